"""Files whose columns are not of the table's types: new values are, and old ones stay the same."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from spark_jobs.datafiles.concatenate import InputFile, concatenate
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.file_changes import FileChanges
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.parquet.rewrite import rewrite_whole
from spark_jobs.datafiles.parquet.splice import splice
from spark_jobs.datafiles.parquet.writer import WrittenFile
from spark_jobs.datafiles.rolling_writer import NewFiles
from spark_jobs.datafiles.statistics import StatisticsCollector
from tests.datafiles.floats import require_sound_bounds
from tests.datafiles.test_rewrite import delete, update

LOCAL = pafs.LocalFileSystem()
ROWS = 12
Way = Callable[..., WrittenFile]


@dataclass(frozen=True)
class Pair:
    """A column as a file has it and as its table does; ``new`` fits only the table's type."""

    stored: pa.DataType
    table: pa.DataType
    old: Sequence[Any]
    new: Any
    required: bool = False
    arguments: dict[str, Any] | None = None

    def source(self, path: Path) -> pa.Table:
        """Write a file of four row groups; returns its rows as the table has them."""
        field = pa.field("v", self.stored, nullable=not self.required)
        values = [self.old[n % len(self.old)] for n in range(ROWS)]
        ids = pa.array(range(ROWS), pa.int64())
        schema = pa.schema([("id", pa.int64()), field])
        rows = pa.table([ids, pa.array(values, self.stored)], schema)
        pq.write_table(rows, path, 3, store_schema=False, **(self.arguments or {}))
        return pa.table({"id": ids, "v": pa.array(values, self.table)})

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([("id", pa.int64()), ("v", self.table)])


def at(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


OLD, FINE = at("2024-02-29T12:30:00.123"), at("1969-12-31T23:59:59.999999")
ZONED, FINE_ZONED = OLD.replace(tzinfo=dt.UTC), FINE.replace(tzinfo=dt.UTC)
MS, US, NS = (pa.timestamp(unit) for unit in ("ms", "us", "ns"))
UTC = pa.timestamp("us", "UTC")
FIXED = {"store_decimal_as_integer": False}
INTEGERS = {"store_decimal_as_integer": True}
CENTS = [Decimal("1.50"), None, Decimal("-9.99")]


def required(kind: pa.DataType, name: str = "element") -> pa.Field:
    return pa.field(name, kind, nullable=False)


PAIRS: dict[str, Pair] = {
    "milliseconds": Pair(MS, US, [OLD, None], FINE),
    "nanoseconds": Pair(NS, US, [OLD, None], at("9999-12-31T23:59:59.999999")),
    "milliseconds of UTC": Pair(pa.timestamp("ms", "UTC"), UTC, [ZONED, None], FINE_ZONED),
    "with a zone": Pair(UTC, US, [OLD, None], FINE),
    "without a zone": Pair(US, UTC, [ZONED, None], FINE_ZONED),
    "fewer digits": Pair(
        pa.decimal128(4, 2), pa.decimal128(12, 2), CENTS, Decimal("1234567890.12"), False, INTEGERS
    ),
    "fewer digits as bytes": Pair(
        pa.decimal128(9, 2), pa.decimal128(38, 2), CENTS, Decimal(10) ** 35, False, FIXED
    ),
    "fewer decimals": Pair(
        pa.decimal128(9, 2), pa.decimal128(14, 4), CENTS, Decimal("1.2345"), False, INTEGERS
    ),
    "bytes for integers": Pair(
        pa.decimal128(12, 2), pa.decimal128(18, 2), CENTS, Decimal(10) ** 15, False, FIXED
    ),
    "tinyint": Pair(pa.int8(), pa.int32(), [-128, None, 127], 2**31 - 1),
    "smallint": Pair(pa.int16(), pa.int32(), [-(2**15), None], -(2**31)),
    "unsigned": Pair(pa.uint16(), pa.int32(), [2**16 - 1, None], -1),
    "unsigned long": Pair(pa.uint32(), pa.int64(), [2**32 - 1, None], -1),
    "int": Pair(pa.int32(), pa.int64(), [-(2**31), None], 2**63 - 1),
    "float": Pair(pa.float32(), pa.float64(), [1.5, -0.0, None], 0.1),
    "bytes of one length": Pair(pa.binary(3), pa.binary(), [b"abc", None], b"longer"),
    "bytes for texts": Pair(pa.binary(), pa.string(), [b"a", None, b"b"], "new"),
    "texts for bytes": Pair(pa.string(), pa.binary(), ["a", None, "b"], b"\xff"),
    "required": Pair(pa.int64(), pa.int64(), [1, 2], None, required=True),
    "required text": Pair(pa.string(), pa.string(), ["a", "b"], None, required=True),
    "required elements": Pair(
        pa.list_(required(pa.int32())), pa.list_(pa.int32()), [[1, 2], None, []], [None, 3]
    ),
    "required values": Pair(
        pa.map_(pa.string(), required(pa.int32(), "value")),
        pa.map_(pa.string(), pa.int32()),
        [[("a", 1)], None, []],
        [("b", None)],
    ),
    "required fields": Pair(
        pa.struct([required(pa.int32(), "a")]), pa.struct([("a", pa.int32())]), [{"a": 1}], None,
        True,
    ),
    "nested milliseconds": Pair(
        pa.struct([("a", pa.list_(MS))]), pa.struct([("a", pa.list_(US))]), [{"a": [OLD]}, None],
        {"a": [FINE, None]},
    ),
    "fields in another order": Pair(
        pa.struct([("b", pa.float32()), ("a", pa.int32())]),
        pa.struct([("a", pa.int64()), ("b", pa.float64())]),
        [{"b": 1.5, "a": 2}, None],
        {"a": 2**40, "b": 0.1},
    ),
    "values of maps": Pair(
        pa.map_(pa.string(), MS), pa.map_(pa.string(), US), [[("k", OLD)], None], [("n", FINE)]
    ),
    "lists of another layout": Pair(
        pa.list_(pa.field("item", pa.int32())), pa.list_(pa.int64()), [[1, None], None], [2**40],
        False, {"use_compliant_nested_type": False},
    ),
}  # fmt: skip


def changes_of(pair: Pair) -> dict[str, tuple[FileChanges, Callable[[int, Any], Any], set[int]]]:
    """Changes to some row groups, with the values afterwards and the deleted rows."""
    new, kind = {1: pair.new, 2: None, 10: pair.new}, pair.table
    both = update("v", new, kind).and_deleted(np.array([0, 3, 4, 5, 11]))
    other = update("id", {1: 1, 10: 10}, pa.int64())
    return {
        "update": (update("v", new, kind), new.get, set()),
        "of another column": (other, lambda n, old: old, set()),
        "delete": (delete(0, 7), lambda n, old: old, {0, 7}),
        "both": (both, new.get, {0, 3, 4, 5, 11}),
    }


def rewritten(
    way: Way, pair: Pair, source: Path, target: Path, changes: FileChanges, mapped: bool
) -> WrittenFile:
    mappings = [FieldMapping(each, each) for each in pair.schema] if mapped else None
    return way(LOCAL, str(source), str(target), changes, Compression(), mappings, pair.schema)


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("way", [splice, rewrite_whole])
@pytest.mark.parametrize("name", sorted(PAIRS))
def test_values_are_of_the_table(tmp_path: Path, name: str, way: Way, mapped: bool) -> None:
    pair = PAIRS[name]
    source, target = tmp_path / "source.parquet", tmp_path / "target.parquet"
    before = pair.source(source)
    for what, (changes, value, gone) in changes_of(pair).items():
        written = rewritten(way, pair, source, target, changes, mapped)

        rows = pq.ParquetFile(target).read()
        expected = [
            {"id": row["id"], "v": value(n, row["v"])}
            for n, row in enumerate(before.to_pylist())
            if n not in gone
        ]
        found = rows.column("v")
        assert in_table(found, pair.table).to_pylist() == [each["v"] for each in expected], what
        assert rows.column("id").to_pylist() == [each["id"] for each in expected]
        if what in ("update", "both"):
            assert plain(found.type) == plain(pair.table)
        collector = StatisticsCollector()
        collector.add_column("v", pa.chunked_array([[each["v"] for each in expected]], pair.table))
        assert written.statistics["v"] == collector.result()["v"]
        require_sound_bounds(target)
        shown = duckdb.sql(f"SELECT id, v IS NULL FROM '{target}' ORDER BY ALL").fetchall()
        assert shown == sorted((each["id"], each["v"] is None) for each in expected)


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_files_of_both_types_are_put_together(tmp_path: Path, name: str) -> None:
    pair = PAIRS[name]
    source, target = tmp_path / "source.parquet", tmp_path / "target.parquet"
    before = pair.source(source)
    other = tmp_path / "other.parquet"
    pq.write_table(before.cast(pair.schema), other, store_schema=False)
    none = np.empty(0, np.int64)
    # Row groups that are stored as the table's are copied.
    files = NewFiles(LOCAL, pair.schema, 1, Compression())
    mappings = [FieldMapping(each, pq.read_schema(source).field(each.name)) for each in pair.schema]
    inputs = [InputFile(str(source), ROWS, none, mappings), InputFile(str(other), ROWS, none)]

    written = concatenate(LOCAL, inputs, str(target), files)

    assert written is not None
    rows = pq.ParquetFile(target).read()
    assert plain(rows.column("v").type) == plain(pair.table)
    assert rows.to_pylist() == before.to_pylist() * 2


def in_table(values: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """Values of a file as those of the table."""
    field = pa.field("v", kind)
    mapping = FieldMapping(field, field)
    return pa.concat_arrays([mapping.values(chunk) for chunk in values.chunks])


def plain(kind: pa.DataType) -> Any:
    """The type without names and nullability of what is nested."""
    if not pa.types.is_nested(kind):
        return str(kind)
    if pa.types.is_map(kind):
        return ("map", plain(kind.key_type), plain(kind.item_type))
    names = sorted(field.name for field in kind) if pa.types.is_struct(kind) else []
    return (names, [plain(kind.field(n).type) for n in range(kind.num_fields)])
