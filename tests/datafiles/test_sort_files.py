"""Rows of files in the order of a key, in bounded memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from datetime import date, time
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.datafiles import sorted_runs
from spark_jobs.datafiles.concatenate import InputFile
from spark_jobs.datafiles.loose_rows import in_order
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.rolling_writer import NewFiles
from spark_jobs.datafiles.sort_files import sort_files
from spark_jobs.datafiles.sorted_runs import SortedRuns
from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.spi.writes import DerivedColumns, RowOrder, SortKey
from tests.datafiles.files_to_concatenate import LOCAL, SCHEMA, at, rows_of, stored

MIB = 2**20
BY_ID = RowOrder((SortKey("id"),))
_VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "flag": (pa.bool_(), [False, True]),
    "number": (pa.int32(), [-(2**31), -1, 0, 2**31 - 1]),
    "text": (pa.string(), ["", "a", "ab", "ä", "\uffee", "\U0001f600"]),
    "bytes": (pa.binary(), [b"", b"\x00", b"\x7f", b"\x80", b"\xff"]),
    "fixed": (pa.binary(2), [b"\x00\x00", b"\x7f\xff", b"\x80\x00"]),
    "price": (pa.decimal128(9, 2), [Decimal("-1.10"), Decimal("0.00"), Decimal("20.00")]),
    "day": (pa.date32(), [date(1969, 12, 31), date(1970, 1, 1)]),
    "at": (pa.timestamp("us"), [at("1969-12-31T23:00"), at("2026-01-01")]),
    "clock": (pa.time64("us"), [time(0), time(23, 59)]),
}
_TYPES = pa.schema([(name, kind) for name, (kind, _) in _VALUES.items()])


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_rows_are_as_if_all_were_sorted_at_once(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(_TYPES.names), min_size=1, max_size=3, unique=True))
    keys = tuple(
        SortKey(each, data.draw(st.booleans()), data.draw(st.booleans())) for each in names
    )
    row = st.fixed_dictionaries(
        {name: st.none() | st.sampled_from(values) for name, (_, values) in _VALUES.items()}
    )
    tables = [
        pa.Table.from_pylist(each, schema=_TYPES)
        for each in data.draw(st.lists(st.lists(row, max_size=9), max_size=6))
    ]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_runs, "_BATCH_BYTES", data.draw(st.sampled_from([1, 200, MIB])))
        patch.setattr(sorted_runs, "_MOST_RUNS", data.draw(st.integers(2, 4)))
        runs = SortedRuns(RowOrder(keys), Path(folder), data.draw(st.sampled_from([1, 400, MIB])))
        for table in tables:
            runs.add_rows(table)
        found = pa.concat_tables([_TYPES.empty_table(), *runs.rows()])
        assert list(Path(folder).iterdir()) == []

    rows = pa.concat_tables([_TYPES.empty_table(), *tables])
    assert runs.row_count == rows.num_rows
    assert found.select(names).to_pylist() == in_order(rows, list(keys)).select(names).to_pylist()
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, rows.to_pylist()))


def negated(rows: pa.RecordBatch) -> list[pa.Array]:
    return [pa.array([-each for each in rows.column("id").to_pylist()], pa.int64())]


def new_files(target: int = 2**28) -> NewFiles:
    return NewFiles(LOCAL, SCHEMA, target, Compression("zstd", None))


def paths(folder: Path) -> Iterator[str]:
    return (str(folder / f"new-{number}.parquet") for number in count())


def test_files_have_shares_of_the_rows_in_order(tmp_path: Path, temporary: Path) -> None:
    inputs = [stored(tmp_path / f"{n}.parquet", rows_of(n * 10, 10)) for n in range(3)]
    gone = InputFile(inputs[0].path, 10, np.array([0, 9]))
    derived = DerivedColumns(("id",), (("negated", "BIGINT"),), negated)
    order = RowOrder((SortKey("negated"),), derived)
    names = paths(tmp_path)

    files = sort_files(LOCAL, [gone, *inputs[1:]], order, 3, lambda: next(names), new_files(2_000))

    found = [pq.read_table(each.path) for each in files]
    assert [each.num_rows for each in found] == [10, 10, 8]
    assert [each.rows for each in files] == [10, 10, 8]
    assert all(each.schema.names == SCHEMA.names for each in found)
    ids = pa.concat_tables(found).column("id").to_pylist()
    assert ids == [n for n in range(29, 0, -1) if n != 9]
    expected = {row["id"]: row for row in rows_of(0, 30).to_pylist()}
    rows = pa.concat_tables(found).to_pylist()
    assert rows == [expected[row["id"]] for row in rows]
    assert files[0].statistics["id"].minimum == 20
    assert list(temporary.iterdir()) == []


def test_no_rows_are_no_files(tmp_path: Path) -> None:
    source = stored(tmp_path / "0.parquet", rows_of(0, 2))
    gone = InputFile(source.path, 2, np.array([0, 1]))
    assert sort_files(LOCAL, [gone], BY_ID, 2, next, new_files()) == []


def test_a_damaged_file_leaves_nothing_on_the_disk(tmp_path: Path, temporary: Path) -> None:
    source = stored(tmp_path / "0.parquet", rows_of(0, 2))
    damaged = InputFile(source.path, 3, np.empty(0, np.int64))
    with pytest.raises(CatalogError) as raised:
        sort_files(LOCAL, [source, damaged], BY_ID, 1, next, new_files(1))
    assert raised.value.code is ErrorCode.DATA_FILE_UNREADABLE
    assert list(temporary.iterdir()) == []


def test_memory_does_not_grow_with_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorted_runs, "_MOST_RUNS", 8)
    rows, random = 100_000, np.random.default_rng(7)
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    table = pa.table({"id": random.permutation(rows), "text": ["x" * 300] * rows}, schema=schema)
    inputs = [stored(tmp_path / f"{n}.parquet", table, group=rows // 4) for n in range(5)]
    size = 5 * table.nbytes
    del table
    files = NewFiles(LOCAL, schema, 4 * MIB, Compression("zstd", None))
    names = paths(tmp_path)
    default = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(default)
    pa.set_memory_pool(pool)
    try:
        (found,) = sort_files(LOCAL, inputs, BY_ID, 1, lambda: next(names), files)
    finally:
        pa.set_memory_pool(default)
    ids = pq.read_table(found.path).column("id").to_pylist()
    assert ids == sorted([*range(rows)] * 5)
    assert size > 140 * MIB
    assert pool.max_memory() < 60 * MIB
