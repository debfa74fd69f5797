"""A file of an older schema is rewritten into one of the table's: by splicing, and as a whole."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.file_changes import ColumnChange, FileChanges
from spark_jobs.datafiles.file_scan import FileScan
from spark_jobs.datafiles.key_probe import KeyProbe
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.parquet.rewrite import rewrite, rewrite_whole
from spark_jobs.datafiles.parquet.splice import splice
from spark_jobs.datafiles.row_groups import read_row
from spark_jobs.errors import DataError, ErrorCode, NotSupportedError

FILES = pafs.LocalFileSystem()
CODEC = Compression()
ROWS = 1000
NOTHING = np.zeros(0, dtype=np.int64)
INNER = pa.struct([("x", pa.int32()), ("y", pa.string())])
ELEMENT = pa.struct([("p", pa.int32())])
OLD = pa.schema(
    [
        ("a", pa.int32()),
        ("b", pa.string()),
        ("c", pa.decimal128(9, 2)),
        ("gone", pa.int64()),
        ("f", pa.float32()),
        ("kept", pa.float64()),
        ("at", pa.timestamp("ms")),
        ("code", pa.string()),
        ("s", INNER),
        ("l", pa.list_(ELEMENT)),
        ("m", pa.map_(pa.string(), ELEMENT)),
    ]
)


def mapping(
    name: str, kind: pa.DataType, source: str | None, *parts: FieldMapping, padded_to: int = 0
) -> FieldMapping:
    old = None if source is None else OLD.field(source)
    return FieldMapping(pa.field(name, kind), old, parts, padded_to)


def part(name: str, kind: pa.DataType, source: tuple[str, pa.DataType] | None) -> FieldMapping:
    return FieldMapping(pa.field(name, kind), pa.field(*source) if source else None)


def element(wanted: pa.DataType) -> FieldMapping:
    """Of a list or a map: ``p`` widened, and a new field."""
    parts = (part("p", pa.int64(), ("p", pa.int32())), part("new", pa.string(), None))
    return FieldMapping(pa.field("element", wanted), pa.field("element", ELEMENT), parts)


NEW_INNER = pa.struct([("z", pa.string()), ("new", pa.int32()), ("x", pa.int64())])
NEW_ELEMENT = pa.struct([("p", pa.int64()), ("new", pa.string())])
KEY = FieldMapping(
    pa.field("key", pa.string(), nullable=False), pa.field("key", pa.string(), nullable=False)
)
MAPPINGS = (
    mapping("kept again", pa.float64(), "kept"),
    mapping("A", pa.int64(), "a"),
    mapping("b", pa.string(), "b"),
    mapping("c", pa.decimal128(12, 3), "c"),
    mapping("gone", pa.int32(), None),
    mapping("f", pa.float64(), "f"),
    mapping("at", pa.timestamp("us"), "at"),
    mapping("code", pa.string(), "code", padded_to=4),
    mapping(
        "s",
        NEW_INNER,
        "s",
        part("z", pa.string(), ("y", pa.string())),
        part("new", pa.int32(), None),
        part("x", pa.int64(), ("x", pa.int32())),
    ),
    mapping("l", pa.list_(NEW_ELEMENT), "l", element(NEW_ELEMENT)),
    mapping("m", pa.map_(pa.string(), NEW_ELEMENT), "m", KEY, element(NEW_ELEMENT)),
)
CHANGES = FileChanges(
    np.array([3, 5, 700]),
    np.array([True, False, False]),
    {
        "A": ColumnChange(np.array([1, 2]), pa.array([-5, 2**40])),
        "b": ColumnChange(np.array([1]), pa.array(["new"])),
        "gone": ColumnChange(np.array([2]), pa.array([7], pa.int32())),
    },
)
UNCHANGED = FileChanges(np.array([700]), np.array([False]), {"b": CHANGES.columns["b"]})


def old_row(i: int) -> dict[str, Any]:
    return {
        "a": i,
        "b": f"b{i % 7}" if i % 5 else None,
        "c": Decimal(i) / 4,
        "gone": i,
        "f": i / 3,
        "kept": (-0.0, float("nan"), i / 7)[i % 3],
        "at": datetime(2020, 1, 1) + timedelta(milliseconds=i),  # noqa: DTZ001 - no time zone
        "code": "é" if i % 2 else None,
        "s": {"x": i, "y": "y"} if i % 4 else None,
        "l": [{"p": 1}, None, {"p": i}] if i % 3 else None,
        "m": {"k": {"p": i}} if i % 2 else None,
    }


def new_row(i: int) -> dict[str, Any]:
    old = old_row(i)
    return {
        "kept again": old["kept"],
        "A": {5: -5, 700: 2**40}.get(i, i),
        "b": "new" if i == 5 else old["b"],
        "c": old["c"],
        "gone": 7 if i == 700 else None,
        "f": float(np.float32(i / 3)),
        "at": old["at"],
        "code": "é   " if i % 2 else None,
        "s": {"z": "y", "new": None, "x": i} if i % 4 else None,
        "l": [widened(1), None, widened(i)] if i % 3 else None,
        "m": [("k", widened(i))] if i % 2 else None,
    }


def in_arrow(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with the types of the table, such as decimals of its scale."""
    return pa.Table.from_pylist(rows, pa.schema(each.field for each in MAPPINGS)).to_pylist()


def widened(p: int) -> dict[str, Any]:
    return {"p": p, "new": None}


@pytest.fixture(params=["integers", "bytes"])
def old_file(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The old file, with decimals stored in either form."""
    path = str(tmp_path / "old.parquet")
    table = pa.Table.from_pylist(list(map(old_row, range(ROWS))), OLD)
    integers = request.param == "integers"
    pq.write_table(table, path, row_group_size=300, store_decimal_as_integer=integers)
    return path


@pytest.mark.parametrize("write", [splice, rewrite_whole])
def test_the_new_file_has_the_tables_columns(old_file: str, tmp_path: Path, write: Any) -> None:
    target = str(tmp_path / "new.parquet")

    written = write(FILES, old_file, target, CHANGES, CODEC, MAPPINGS)

    found = pq.read_table(target)
    assert found.schema.names == [each.field.name for each in MAPPINGS]
    assert all(
        kind.equals(each.field.type)
        for kind, each in zip(found.schema.types, MAPPINGS, strict=True)
    )
    expected = [new_row(i) for i in range(ROWS) if i != 3]
    assert repr(found.to_pylist()) == repr(in_arrow(expected))
    assert (written.rows, written.size) == (ROWS - 1, Path(target).stat().st_size)
    assert written.statistics["A"].maximum == 2**40
    assert written.statistics["gone"].null_count == ROWS - 2
    assert written.statistics["c"].maximum == Decimal("249.750")
    assert written.statistics["kept again"].minimum is None, "it has NaN"


def test_both_ways_give_the_same(old_file: str, tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("spliced.parquet", "whole.parquet")]
    spliced = splice(FILES, old_file, paths[0], CHANGES, CODEC, MAPPINGS)
    whole = rewrite_whole(FILES, old_file, paths[1], CHANGES, CODEC, MAPPINGS)

    one, other = map(pq.read_table, paths)
    assert one.drop_columns("kept again").equals(other.drop_columns("kept again"))
    assert spliced.statistics == whole.statistics


def test_columns_that_need_no_change_are_copied_byte_for_byte(
    old_file: str, tmp_path: Path
) -> None:
    target = str(tmp_path / "new.parquet")
    splice(FILES, old_file, target, UNCHANGED, CODEC, MAPPINGS)

    for group in range(4):
        assert pages(target, group, "kept again") == pages(old_file, group, "kept")
    assert pages(target, 0, "b") == pages(old_file, 0, "b")


def pages(path: str, group: int, column: str) -> bytes:
    metadata = pq.read_metadata(path).row_group(group)
    (chunk,) = [
        metadata.column(i)
        for i in range(metadata.num_columns)
        if metadata.column(i).path_in_schema == column
    ]
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    return Path(path).read_bytes()[start : start + chunk.total_compressed_size]


def test_a_scan_gives_the_tables_columns(old_file: str) -> None:
    fields = [each.field for each in MAPPINGS]
    by_name = {each.field.name: each for each in MAPPINGS}
    found = [rows for _, rows in FileScan(FILES, fields, {}, by_name).rows(old_file, NOTHING)]

    unchanged = [new_row(i) | {"A": i, "b": old_row(i)["b"], "gone": None} for i in range(ROWS)]
    assert repr(pa.concat_tables(found).to_pylist()) == repr(in_arrow(unchanged))


@pytest.mark.parametrize(
    ("name", "values", "positions"),
    [
        ("A", pa.array([7, 2**40]), [7]),
        ("code", pa.array(["é   "]), list(range(1, ROWS, 2))),
        ("gone", pa.array([7], pa.int32()), []),
    ],
)
def test_keys_are_looked_up_in_the_old_column(
    old_file: str, name: str, values: pa.Array, positions: list[int]
) -> None:
    by_name = {each.field.name: each for each in MAPPINGS}
    scan = FileScan(FILES, [by_name["b"].field], {name: KeyProbe(values)}, by_name)
    found = [place for places, _ in scan.rows(old_file, NOTHING) for place in places]
    assert found == positions


def test_a_row_for_an_error_has_the_tables_names(old_file: str) -> None:
    found = read_row(FILES, old_file, 301, ["A", "gone", "s"], MAPPINGS)
    assert found == {"A": 301, "gone": None, "s": {"z": "y", "new": None, "x": 301}}


REQUIRED = (
    FieldMapping(pa.field("A", pa.int64()), OLD.field("a")),
    FieldMapping(pa.field("b", pa.string(), nullable=False), OLD.field("b")),
)


@pytest.mark.parametrize("write", [rewrite, rewrite_whole])
def test_a_null_from_before_the_column_was_required(
    old_file: str, tmp_path: Path, write: Any
) -> None:
    target = str(tmp_path / "new.parquet")
    with pytest.raises(DataError) as raised:
        write(FILES, old_file, target, UNCHANGED, CODEC, REQUIRED)

    assert raised.value.code is ErrorCode.NOT_NULL_VIOLATION
    assert raised.value.message.startswith(f"Column b must not be NULL, but data file {old_file}")


@pytest.mark.parametrize("write", [rewrite, rewrite_whole])
def test_rows_with_such_nulls_may_be_updated_or_deleted(
    old_file: str, tmp_path: Path, write: Any
) -> None:
    nulls = np.arange(0, ROWS, 5)
    deleted = nulls % 2 == 0
    updated = np.flatnonzero(~deleted)
    values = pa.array(["known"] * len(updated))
    changes = FileChanges(nulls, deleted, {"b": ColumnChange(updated, values)})

    written = write(FILES, old_file, str(tmp_path / "new.parquet"), changes, CODEC, REQUIRED)

    assert written.rows == ROWS - int(deleted.sum())
    assert written.statistics["b"].null_count == 0


def test_a_file_that_lacks_a_column_of_its_schema(old_file: str, tmp_path: Path) -> None:
    lost = (FieldMapping(pa.field("n", pa.int32()), pa.field("lost", pa.int32())),)
    with pytest.raises(NotSupportedError) as raised:
        rewrite(FILES, old_file, str(tmp_path / "new.parquet"), UNCHANGED, CODEC, lost)

    assert old_file in raised.value.message
    assert "has no column lost, which its schema has" in raised.value.message


@pytest.mark.parametrize("kind", [pa.string(), pa.int64()])
def test_a_file_of_another_type_than_its_schema(
    old_file: str, tmp_path: Path, kind: pa.DataType
) -> None:
    wrong = (FieldMapping(pa.field("A", kind), pa.field("a", kind)), MAPPINGS[2])
    with pytest.raises(NotSupportedError) as raised:
        rewrite(FILES, old_file, str(tmp_path / "new.parquet"), UNCHANGED, CODEC, wrong)

    assert old_file in raised.value.message
    assert f"holds int32 in column a, but its schema says {kind}" in raised.value.message
