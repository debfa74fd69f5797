"""Sections are read as a record-by-record model merges them, in windows of any size."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.connectors.paimon.keyed.file_columns import POSITION, SEQUENCE_NUMBER
from spark_jobs.connectors.paimon.keyed.merge_engines import MergeEngine
from spark_jobs.connectors.paimon.keyed.section_reader import RunFile, SectionReader
from spark_jobs.errors import CatalogError, ErrorCode, NotSupportedError
from tests.connectors.paimon.keyed.merged_model import MergedRow, merged_rows
from tests.connectors.paimon.keyed.random_sections import (
    AFTER,
    BEFORE,
    DELETE,
    INSERT,
    KEY_VALUES,
    RandomSection,
    key_of,
    keys_of,
    random_row,
    random_section,
    reader_of,
    run_file,
    schema_of,
)

FUNCTIONS = {
    "text": ("max", "min", "last_value", "first_value", "first_non_null_value"),
    "n": ("sum", "max", "min", "last_non_null_value", "first_not_null_value"),
    "amount": ("sum", "max", "min", "last_value"),
    "flag": ("bool_and", "bool_or", "last_value", "first_value"),
}
SEQUENCES = ((), (), ("s1",), ("s2",), ("s1", "s2"), ("s2", "s1"))


def engine_of(random: Random, kind: Any) -> MergeEngine:
    if kind == "first-row":
        return MergeEngine(kind)
    functions = {}
    if kind == "aggregation":
        functions = {name: random.choice(each) for name, each in FUNCTIONS.items()}
    return MergeEngine(kind, random.choice(SEQUENCES), random.random() < 0.5, functions)


def read(
    reader: SectionReader,
    files: Sequence[RunFile],
    columns: Sequence[str] | None = None,
    key_values: Mapping[str, pa.Array] | None = None,
) -> list[dict[str, Any]]:
    names = reader.schema.columns.names if columns is None else columns
    windows = list(reader.rows(files, names, key_values))
    system = [pa.field(SEQUENCE_NUMBER, pa.int64()), pa.field(POSITION, pa.int64())]
    fields = [reader.schema.columns.field(name) for name in names]
    for window in windows:
        assert window.schema == pa.schema([*fields, *system])
        assert window.num_rows
    return [row for window in windows for row in window.to_pylist()]


def expected(rows: Mapping[Any, MergedRow]) -> list[dict[str, Any]]:
    return [{**m.row, SEQUENCE_NUMBER: m.number, POSITION: m.place} for m in rows.values()]


def check(seed: int, kind: str, kinds: Sequence[str], folder: Path) -> None:
    """A random section, read whole, and in part."""
    random = Random(seed)
    schema = schema_of(kinds, engine_of(random, kind), thin=random.random() < 0.5)
    keys = keys_of(kinds)
    chosen = sorted(random.sample(keys, min(len(keys), random.choice([1, 5, 20]))))
    section = random_section(random, schema, folder, chosen)
    reader = reader_of(schema, random.choice([1, 2, 5, 2**17]))
    model = merged_rows(schema, section.records)

    assert read(reader, section.files) == expected(model)
    _check_part(random, reader, section, model)


def _check_part(
    random: Random, reader: SectionReader, section: RandomSection, model: Mapping[Any, MergedRow]
) -> None:
    """Some keys, and columns that need not include the key."""
    name = random.choice(reader.schema.key)
    index = reader.schema.key.index(name)
    present = sorted({key_of(reader.schema, record.row)[index] for record in section.records})
    if not present:
        return
    wanted = sorted(random.sample(present, random.randint(1, len(present))))
    kind = reader.schema.columns.field(name).type
    columns = random.sample(reader.schema.columns.names, random.randrange(4))
    part = {key: row for key, row in model.items() if key[index] in wanted}
    chosen = [
        {name: row[name] for name in [*columns, SEQUENCE_NUMBER, POSITION]}
        for row in expected(part)
    ]
    assert read(reader, section.files, columns, {name: pa.array(wanted, kind)}) == chosen


SEEDS = st.integers(0, 2**32 - 1)
ENGINES = ("deduplicate", "first-row", "partial-update", "aggregation")


@pytest.mark.parametrize("kind", ENGINES)
@settings(max_examples=12, deadline=None)
@given(seed=SEEDS)
def test_a_section_is_what_the_model_says(kind: str, seed: int) -> None:
    with TemporaryDirectory() as folder:
        check(seed, kind, ("int", "string"), Path(folder))


@pytest.mark.extended
@pytest.mark.parametrize("kind", ENGINES)
@settings(max_examples=1000, deadline=None)
@given(seed=SEEDS)
def test_many_sections_are_what_the_model_says(kind: str, seed: int) -> None:
    with TemporaryDirectory() as folder:
        kinds = Random(seed).sample(list(KEY_VALUES), 2)
        check(seed, kind, kinds, Path(folder))


@pytest.mark.parametrize("kind", KEY_VALUES)
def test_keys_of_any_type(kind: str, tmp_path: Path) -> None:
    for seed in range(3):
        check(seed, "deduplicate", (kind,), tmp_path)
    check(3, "deduplicate", (kind, "smallint"), tmp_path)
    check(4, "deduplicate", ("boolean", kind), tmp_path)


DEDUPLICATE = MergeEngine("deduplicate")
SCHEMA = schema_of(("int",), DEDUPLICATE)


def records(
    keys: Sequence[int], first: int = 0, kinds: Sequence[int] = (), **values: Any
) -> list[tuple[int, int, dict[str, Any]]]:
    row = random_row(Random(0), SCHEMA, (0,)) | values
    return [
        (first + i, kinds[i] if kinds else INSERT, {**row, "k0": key}) for i, key in enumerate(keys)
    ]


def test_no_run_brings_more_into_a_window_than_its_share(tmp_path: Path) -> None:
    files = [
        run_file(SCHEMA, tmp_path, 5, records(range(0, 400, 2))),
        run_file(SCHEMA, tmp_path, 5, records(range(400, 1000, 2))),
        run_file(SCHEMA, tmp_path, 0, records(range(1, 1000, 2), 1000), group_rows=7),
        run_file(SCHEMA, tmp_path, 0, records(range(100, 110), 2000)),
    ]
    reader = reader_of(SCHEMA, window_rows=10)

    sizes = [window.num_rows for window in reader.rows(files, ["k0"])]

    assert sum(sizes) == 1000
    assert max(sizes) <= 3 * 10


def test_a_file_is_read_only_as_far_as_windows_are_taken(tmp_path: Path) -> None:
    files = [
        run_file(SCHEMA, tmp_path, 5, records(range(100)), group_rows=10),
        run_file(SCHEMA, tmp_path, 5, records(range(100, 200)), group_rows=10),
    ]
    Path(files[1].path).unlink()
    windows = reader_of(SCHEMA).rows(files, ["k0"])

    assert [next(windows).num_rows for _ in range(10)] == [10] * 10
    with pytest.raises(CatalogError, match="missing"):
        next(windows)


def test_a_reader_travels_by_pickle(tmp_path: Path) -> None:
    file = run_file(SCHEMA, tmp_path, 5, records([1, 2]))
    reader, files = pickle.loads(pickle.dumps((reader_of(SCHEMA), [file])))

    assert [row["k0"] for row in read(reader, files)] == [1, 2]


def test_a_delete_of_any_level_hides_older_records_only(tmp_path: Path) -> None:
    files = [
        run_file(SCHEMA, tmp_path, 5, records([1, 2, 3, 4])),
        run_file(SCHEMA, tmp_path, 3, records([1, 2, 3], 10, [DELETE, BEFORE, DELETE])),
        run_file(SCHEMA, tmp_path, 0, records([1], 20, [AFTER])),
    ]

    rows = read(reader_of(SCHEMA), files, ["k0"])

    assert [(row["k0"], row[POSITION]) for row in rows] == [(1, 2 << 40), (4, 3)]


def test_nothing_is_read_of_no_files() -> None:
    assert read(reader_of(SCHEMA), []) == []


@pytest.mark.parametrize("kind", ["first-row", "partial-update", "aggregation"])
@pytest.mark.parametrize("alone", [False, True])
def test_a_delete_record_means_nothing_to_other_engines(
    kind: Any, alone: bool, tmp_path: Path
) -> None:
    schema = schema_of(("int",), MergeEngine(kind))
    files = [run_file(schema, tmp_path, 0, records([1, 2], 5, [INSERT, DELETE]))]
    if not alone:
        files.append(run_file(schema, tmp_path, 0, records([1, 2])))

    with pytest.raises(NotSupportedError, match=f"{kind} does not define"):
        read(reader_of(schema), files)


def damaged(reader: SectionReader, files: Sequence[RunFile]) -> str:
    with pytest.raises(CatalogError) as caught:
        read(reader, files, ["k0"])
    assert caught.value.code == ErrorCode.DATA_FILE_UNREADABLE
    return caught.value.message


@pytest.mark.parametrize("keys", [[2, 1], [1, 3, 2], [1, 1], [1, 2, 3, 3]])
@pytest.mark.parametrize("group_rows", [1, 1000])
@pytest.mark.parametrize("level", [0, 5])
def test_a_file_whose_keys_do_not_ascend_is_named(
    keys: list[int], group_rows: int, level: int, tmp_path: Path
) -> None:
    files = [
        run_file(SCHEMA, tmp_path, 5 - level, records([0, 1, 2, 3])),
        run_file(SCHEMA, tmp_path, level, records(keys, 10), group_rows=group_rows),
    ]

    assert files[1].path in damaged(reader_of(SCHEMA), files)
    assert files[1].path in damaged(reader_of(SCHEMA, 1), files)


def test_order_is_by_all_key_columns(tmp_path: Path) -> None:
    schema = schema_of(("int", "string"), DEDUPLICATE)
    rows = [{**row, "k1": text} for (*_, row), text in zip(records([1, 1, 2]), "bca", strict=True)]
    file = run_file(schema, tmp_path, 0, [(i, INSERT, row) for i, row in enumerate(rows)])
    assert [row["k1"] for row in read(reader_of(schema), [file])] == ["b", "c", "a"]

    rows[0], rows[1] = rows[1], rows[0]
    file = run_file(schema, tmp_path, 0, [(i, INSERT, row) for i, row in enumerate(rows)])
    assert file.path in damaged(reader_of(schema), [file])


@pytest.mark.parametrize("second", [[3], [4, 9], [5]])
def test_files_of_a_level_that_overlap_are_named(second: list[int], tmp_path: Path) -> None:
    files = [
        run_file(SCHEMA, tmp_path, 4, records(second, 10)),
        run_file(SCHEMA, tmp_path, 4, records([1, 3, 5])),
    ]

    message = damaged(reader_of(SCHEMA), files)

    assert files[0].path in message
    assert "of level 4" in message


def test_files_of_level_0_may_overlap(tmp_path: Path) -> None:
    files = [
        run_file(SCHEMA, tmp_path, 0, records([1, 3, 5])),
        run_file(SCHEMA, tmp_path, 0, records([1, 4], 10)),
    ]

    assert [row["k0"] for row in read(reader_of(SCHEMA), files)] == [1, 3, 4, 5]


@pytest.mark.parametrize("count", [1, 3])
def test_a_file_with_another_number_of_rows_is_named(count: int, tmp_path: Path) -> None:
    file = run_file(SCHEMA, tmp_path, 5, records([1, 2]))._replace(row_count=count)

    assert f"{file.path}: it has 2 rows, but should have {count}" in damaged(
        reader_of(SCHEMA), [file]
    )


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_file_with_another_number_of_delete_records_is_named(count: int, tmp_path: Path) -> None:
    kinds = [INSERT, DELETE, BEFORE]
    file = run_file(SCHEMA, tmp_path, 5, records([1, 2, 3], kinds=kinds))
    file = file._replace(delete_count=count)

    message = damaged(reader_of(SCHEMA), [file])

    assert file.path in message
    assert f"its manifest entry counts {count}" in message


def test_records_of_a_key_with_one_number_have_no_order(tmp_path: Path) -> None:
    files = [run_file(SCHEMA, tmp_path, 0, records([7, 8])) for _ in range(2)]

    with pytest.raises(CatalogError, match="key k0 = 7 have the same sequence number"):
        read(reader_of(SCHEMA), files)


def test_sequence_fields_order_records_with_one_number(tmp_path: Path) -> None:
    schema = schema_of(("int",), MergeEngine("deduplicate", ("s1",)))
    files = [
        run_file(schema, tmp_path, 0, records([7], s1=2)),
        run_file(schema, tmp_path, 0, records([7], s1=None)),
    ]
    assert [row["s1"] for row in read(reader_of(schema), files)] == [2]

    with pytest.raises(CatalogError, match="same sequence number"):
        read(reader_of(schema), [files[1], files[1]])
