"""Sections are read in bounded memory, whatever the row groups, and have the same rows then."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

from spark_jobs.connectors.paimon.keyed import section_reader
from spark_jobs.connectors.paimon.keyed.file_columns import (
    KEY_PREFIX,
    SEQUENCE_NUMBER,
    VALUE_KIND,
    file_schema,
)
from spark_jobs.connectors.paimon.keyed.merge_engines import KeyedSchema
from spark_jobs.connectors.paimon.keyed.section_reader import RunFile
from spark_jobs.connectors.paimon.keyed.sorted_runs import held_bytes, runs_to_spill
from spark_jobs.datafiles.parquet import row_groups
from spark_jobs.errors import CatalogError, ErrorCode
from tests.connectors.paimon.keyed.random_sections import column, reader_of, run_file
from tests.connectors.paimon.keyed.test_section_reader import (
    DEDUPLICATE,
    ENGINES,
    SCHEMA,
    SEEDS,
    check,
    read,
    records,
)

MIB = 2**20
ROWS = 40_000


@pytest.fixture
def _little(monkeypatch: pytest.MonkeyPatch) -> None:
    """So little memory that small files are read step by step, and all but one are copied."""
    monkeypatch.setattr(section_reader, "_WINDOW_BYTES", 2_000)
    monkeypatch.setattr(section_reader, "_HELD_BYTES", 0)
    monkeypatch.setattr(row_groups, "_READER_BYTES", 0)
    monkeypatch.setattr(row_groups, "_STEP_ROWS", 3)


@pytest.fixture
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.usefixtures("_little")
@pytest.mark.parametrize("kind", ENGINES)
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=SEEDS)
def test_a_section_is_what_the_model_says(kind: str, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check(seed, kind, ("int", "string"), Path(folder))


@pytest.mark.usefixtures("_little")
def test_copies_are_gone_with_the_section(copies: Path, tmp_path: Path) -> None:
    files = [run_file(SCHEMA, tmp_path, 0, records(range(n, 100), 1000 * n)) for n in range(3)]
    windows = reader_of(SCHEMA).rows(files, ["k0"])
    next(windows)
    assert len(list(copies.glob("*/*.arrow"))) == 2
    assert sum(window.num_rows for window in windows) < 100
    assert list(copies.iterdir()) == []

    abandoned = reader_of(SCHEMA).rows(files, ["k0"])
    next(abandoned)
    del abandoned
    assert list(copies.iterdir()) == []


@pytest.mark.usefixtures("_little")
def test_a_copy_of_a_damaged_file_is_none(copies: Path, tmp_path: Path) -> None:
    files = [run_file(SCHEMA, tmp_path, 0, records(range(n, 100), 1000 * n)) for n in range(3)]
    for number, count in ((2, 97), (0, 101)):
        wrong = [*files]
        wrong[number] = files[number]._replace(row_count=count)
        with pytest.raises(CatalogError, match=f"should have {count}") as raised:
            read(reader_of(SCHEMA), wrong)
        assert raised.value.code is ErrorCode.DATA_FILE_UNREADABLE
        assert wrong[number].path in raised.value.message
    assert list(copies.iterdir()) == []


def test_sections_that_fit_are_not_copied(copies: Path, tmp_path: Path) -> None:
    files = [run_file(SCHEMA, tmp_path, 0, records(range(n, 100), 1000 * n)) for n in range(3)]
    copies.rmdir()
    assert read(reader_of(SCHEMA), files)


def test_the_smallest_runs_are_copied() -> None:
    assert runs_to_spill([], 0) == set()
    assert runs_to_spill([5], 0) == set()
    assert runs_to_spill([5, 3, 4], 12) == set()
    assert runs_to_spill([5, 3, 4], 11) == {1}
    assert runs_to_spill([5, 3, 4], 8) == {1, 2}
    assert runs_to_spill([5, 3, 4], 0) == {1, 2}


def test_what_readers_hold() -> None:
    columns = pa.schema(
        [
            ("n", pa.int64()),
            ("text", pa.string()),
            ("flag", pa.bool_()),
            ("s", pa.struct([("d", pa.decimal128(9, 2)), ("l", pa.list_(pa.int32()))])),
        ]
    )
    assert held_bytes("f.parquet", 10, columns) == 10 * (8 + 32 + 1 + 16 + 4)
    assert held_bytes("f.orc", 10**7, columns) == 10**7 * (8 + 32 + 1 + 16 + 4)
    assert held_bytes("f.parquet", 10**7, columns) < 10 * MIB
    assert held_bytes("f.avro", 10**7, columns) == 0


def large_file(
    schema: KeyedSchema, folder: Path, number: int, columns: dict[str, Any], level: int = 0
) -> RunFile:
    """One row group; its keys lie between those of other numbers."""
    count = len(columns["c0"])
    keys = pa.array(np.arange(count, dtype=np.int64) * 100 + number)
    found = {f"{KEY_PREFIX}k": keys, "k": keys, **columns}
    found[SEQUENCE_NUMBER] = pa.array(np.full(count, number, np.int64))
    found[VALUE_KIND] = pa.array(np.zeros(count, np.int8))
    layout = file_schema(schema.columns, schema.key, thin=schema.thin)
    path = f"{folder}/{number}.parquet"
    table = pa.Table.from_arrays([found[name] for name in layout.names], schema=layout)
    pq.write_table(table, path, row_group_size=count, use_dictionary=False)
    return RunFile(path, level, (number,), count, 0)


def peak(schema: KeyedSchema, files: list[RunFile]) -> tuple[int, int]:
    """The most Arrow memory while a section is read, and that of its rows together."""
    default = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(default)
    pa.set_memory_pool(pool)
    rows = size = 0
    try:
        for window in reader_of(schema).windows(files):
            rows += window.records.num_rows
            size += window.records.nbytes
            del window
    finally:
        pa.set_memory_pool(default)
    assert rows == sum(file.row_count for file in files)
    return pool.max_memory(), size


def schema_of(kind: pa.DataType, columns: int) -> KeyedSchema:
    fields = [column("k", pa.int64(), 0, nullable=False)]
    fields += [column(f"c{i}", kind, i + 1) for i in range(columns)]
    return KeyedSchema(pa.schema(fields), ("k",), DEDUPLICATE, thin=False)


def test_many_large_row_groups(tmp_path: Path) -> None:
    schema = schema_of(pa.int64(), 40)
    numbers = np.random.default_rng(0)
    files = []
    for number in range(16):
        values = numbers.integers(-(2**60), 2**60, (40, ROWS))
        content = {f"c{i}": pa.array(each) for i, each in enumerate(values)}
        files.append(large_file(schema, tmp_path, number, content))
    most, size = peak(schema, files)

    assert size > 200 * MIB
    assert most < 80 * MIB


def test_wide_rows(tmp_path: Path) -> None:
    schema = schema_of(pa.string(), 1)
    files = []
    for number in range(4):
        random = Random(number)
        texts = [f"{random.getrandbits(2000):0600x}" * 20 for _ in range(5_000)]
        files.append(large_file(schema, tmp_path, number, {"c0": pa.array(texts)}))
    most, size = peak(schema, files)

    assert size > 200 * MIB
    assert most < 100 * MIB
