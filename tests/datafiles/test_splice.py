"""What splicing copies, what it encodes anew, and what it leaves out."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from spark_jobs.datafiles.parquet import footer as footers
from spark_jobs.datafiles.parquet import thrift
from spark_jobs.datafiles.parquet.footer import FileField, GroupField, NotSpliceableError
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.parquet.rewrite import rewrite
from spark_jobs.datafiles.parquet.splice import splice
from spark_jobs.datafiles.parquet.thrift import Struct
from spark_jobs.datafiles.parquet.writer import WrittenFile
from tests.datafiles.parquet_files import require_consistent
from tests.datafiles.test_rewrite import delete, update

LOCAL = pafs.LocalFileSystem()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return tmp_path / "source.parquet"


def spliced(source: Path, changes: Any) -> tuple[Path, WrittenFile]:
    target = source.with_name("target.parquet")
    written = splice(LOCAL, str(source), str(target), changes, Compression())
    require_consistent(target)
    return target, written


def chunk_bytes(path: Path, group: int, column: int) -> bytes:
    chunk = pq.ParquetFile(path).metadata.row_group(group).column(column)
    start = chunk.data_page_offset
    if chunk.has_dictionary_page:
        start = min(start, chunk.dictionary_page_offset)
    return path.read_bytes()[start : start + chunk.total_compressed_size]


def footer_of(path: Path) -> Struct:
    return footers.read_footer(LOCAL.open_input_file(str(path))).fields


def first_group(path: Path) -> Struct:
    return footers.items(footer_of(path)[FileField.ROW_GROUPS])[0]


def first_meta(path: Path) -> Struct:
    return footers.meta_of(footers.chunks_of(first_group(path))[0])


def with_footer(path: Path, change: Callable[[Struct], None]) -> None:
    """Rewrite the footer of the file at ``path`` with ``change`` applied."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[-8:-4], "little")
    fields, _ = thrift.parse(raw[-8 - length : -8])
    change(fields)
    path.write_bytes(raw[: -8 - length] + footers.framed(fields))


def test_only_assigned_chunks_of_changed_row_groups_are_not_copied(source: Path) -> None:
    table = pa.table({"id": list(range(90)), "a": ["x", "y"] * 45, "n": [[i] for i in range(90)]})
    pq.write_table(table, source, row_group_size=30, compression="snappy")

    target, _ = spliced(source, update("a", {35: "new"}, pa.string()))

    same = {
        (group, column): chunk_bytes(source, group, column) == chunk_bytes(target, group, column)
        for group in range(3)
        for column in range(3)
    }
    assert [place for place, equal in same.items() if not equal] == [(1, 1)]
    assert pq.read_table(target).column("a")[35].as_py() == "new"


def test_row_groups_that_lose_nothing_are_copied_and_gone_ones_are_left_out(source: Path) -> None:
    pq.write_table(pa.table({"a": list(range(9)), "b": ["x"] * 9}), source, row_group_size=3)

    target, _ = spliced(source, delete(0, 3, 4, 5))

    assert [chunk_bytes(target, 1, i) for i in (0, 1)] == [
        chunk_bytes(source, 2, i) for i in (0, 1)
    ]
    assert pq.read_table(target).column("a").to_pylist() == [1, 2, 6, 7, 8]


def test_empty_row_groups_are_left_out(source: Path) -> None:
    schema = pa.schema({"a": pa.int64()})
    with pq.ParquetWriter(source, schema) as writer:
        for values in ([], [1, 2], [], [3]):
            writer.write_table(pa.table({"a": values}, schema=schema))

    target, written = spliced(source, delete(1))

    assert pq.read_table(target).column("a").to_pylist() == [1, 3]
    assert written.statistics["a"].to_json() == [1, 3, 0]


def test_page_indexes_and_bloom_filters_go_and_encodings_are_told_anew(source: Path) -> None:
    table = pa.table({"a": [i % 5 for i in range(500)], "b": [i % 5 for i in range(500)]})
    pq.write_table(table, source, write_page_index=True, compression="zstd")

    def bloom(fields: Struct) -> None:
        for chunk in footers.chunks_of(footers.items(fields[FileField.ROW_GROUPS])[0]):
            footers.meta_of(chunk).update({14: thrift.i64(4), 15: thrift.i32(10)})

    with_footer(source, bloom)

    target, _ = spliced(source, update("a", dict.fromkeys(range(500), 7), pa.int64()))

    (group,) = footers.items(footer_of(target)[FileField.ROW_GROUPS])
    for chunk in footers.chunks_of(group):
        assert not {4, 5, 6, 7} & chunk.keys()
        meta = footers.meta_of(chunk)
        assert not {14, 15} & meta.keys()
        assert footers.is_all_dictionary(meta)
    assert pq.ParquetFile(target).metadata.row_group(0).column(0).statistics.max == 7


def test_a_dictionary_that_becomes_too_large_is_no_longer_claimed(source: Path) -> None:
    few = [f"{i % 3:01000}" for i in range(3000)]
    pq.write_table(pa.table({"a": few}), source)
    many = {i: f"{i:01000}" for i in range(2999)}

    target, _ = spliced(source, update("a", many, pa.string()))

    (group,) = footers.items(footer_of(target)[FileField.ROW_GROUPS])
    assert not footers.is_all_dictionary(footers.meta_of(footers.chunks_of(group)[0]))
    assert pq.read_table(target).column("a").to_pylist() == [*many.values(), few[-1]]


def test_a_declared_sort_order_survives_deletes_but_not_updates(source: Path) -> None:
    table = pa.table({"a": [1, 2, 3, 4], "b": [1, 2, 3, 4]})
    pq.write_table(table, source, sorting_columns=[pq.SortingColumn(0)])

    kept, _ = spliced(source, delete(1))
    assert GroupField.SORTING_COLUMNS in footers.items(footer_of(kept)[FileField.ROW_GROUPS])[0]
    dropped, _ = spliced(source, update("a", {0: 9}, pa.int64()))
    assert (
        GroupField.SORTING_COLUMNS not in footers.items(footer_of(dropped)[FileField.ROW_GROUPS])[0]
    )


def test_schema_and_properties_of_the_file_stay(source: Path) -> None:
    field = pa.field("a", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "7"})
    table = pa.Table.from_arrays([pa.array([1, 2])], schema=pa.schema([field], {"k": "v"}))
    pq.write_table(table, source)

    target, _ = spliced(source, delete(0))

    before, after = footer_of(source), footer_of(target)
    kept = (FileField.SCHEMA, FileField.PROPERTIES, FileField.CREATED_BY, FileField.COLUMN_ORDERS)
    assert [after[each] for each in kept] == [before[each] for each in kept]


def test_values_that_stay_are_not_interpreted(source: Path) -> None:
    nanos = pa.array([1, 2**62 + 7, None, -5], pa.timestamp("ns"))
    instants = pa.array([2**62 + 1, -(2**62), 3, None], pa.timestamp("us", "UTC"))
    days = pa.array([2**31 - 1, -(2**31), 0, None], pa.date32())
    nan = np.array([0x7FF8_0000_0000_0001, 0xFFF8_0000_0000_0002, 0, 2**63], np.uint64)
    decimals = pa.array([Decimal("-1.5"), Decimal("99999999.9"), None, Decimal(0)])
    table = pa.table(
        {
            "ns": nanos,
            "us": instants,
            "day": days,
            "double": nan.view(np.float64),
            "decimal": decimals.cast(pa.decimal128(20, 1)),
            "id": [0, 1, 2, 3],
        }
    )
    pq.write_table(table, source, use_dictionary=False)
    target = source.with_name("target.parquet")

    splice(LOCAL, str(source), str(target), delete(0), Compression())

    after = pq.read_table(target)
    for name in ("ns", "us", "day", "decimal"):
        assert after.column(name).equals(table.column(name).slice(1))
    assert after.column("double").to_numpy().view(np.uint64).tolist() == nan[1:].tolist()


@pytest.mark.parametrize("distinct", [1, 2, 3, 200, 70_000])
@pytest.mark.parametrize("kind", [pa.int32(), pa.string(), pa.decimal128(20, 2), pa.date32()])
def test_dictionaries_of_any_size_lose_rows(source: Path, distinct: int, kind: pa.DataType) -> None:
    codes = np.random.default_rng(1).integers(0, distinct, 100_000)
    missing = np.arange(100_000) % 7 == 3
    values = pa.array(codes.astype(np.int32), mask=missing)
    values = values.cast(pa.decimal128(20, 0)) if pa.types.is_decimal(kind) else values
    table = pa.table({"a": values.cast(kind), "required": values.fill_null(0).cast(kind)})
    fields = [pa.field("a", kind), pa.field("required", kind, nullable=False)]
    table = pa.Table.from_arrays(table.columns, schema=pa.schema(fields))
    pq.write_table(table, source, compression="zstd", dictionary_pagesize_limit=2**24)
    gone = np.flatnonzero(np.random.default_rng(2).random(100_000) < 0.01)

    target, written = spliced(source, delete(*gone.tolist()))

    expected = table.take(pa.array(np.setdiff1d(np.arange(100_000), gone)))
    assert pq.read_table(target).equals(expected)
    stays = distinct < 70_000 or kind == pa.string()
    assert (chunk_bytes(source, 0, 0)[:20] == chunk_bytes(target, 0, 0)[:20]) is stays
    low, high, nulls = written.statistics["a"].to_json()
    assert nulls == expected.column("a").null_count
    assert (low is None) is (high is None) is False


@pytest.mark.parametrize(
    ("kind", "distinct", "stays"),
    [(pa.int32(), 1000, True), (pa.int32(), 60_000, False), (pa.int64(), 60_000, True)],
)
@pytest.mark.parametrize("deletes", [True, False])
def test_numbers_little_longer_than_their_indices_lose_the_dictionary(
    source: Path, kind: pa.DataType, distinct: int, stays: bool, deletes: bool
) -> None:
    codes = np.random.default_rng(1).integers(0, distinct, 200_000)
    table = pa.table({"a": pa.array(codes, kind)})
    pq.write_table(table, source, compression="zstd")
    changes = delete(3) if deletes else update("a", {3: 7}, kind)

    target, written = spliced(source, changes)

    left = np.delete(codes, 3) if deletes else np.where(np.arange(200_000) == 3, 7, codes)
    assert (pq.read_table(target).column("a").to_numpy() == left).all()
    assert footers.is_all_dictionary(first_meta(target)) is stays
    assert written.statistics["a"].to_json() == [left.min(), left.max(), 0]
    assert written.size < source.stat().st_size * 1.3


def test_pages_end_at_a_million_rows(source: Path) -> None:
    table = pa.table({"a": pa.array(np.arange(1_200_000, dtype=np.int64) % 3)})
    pq.write_table(table, source, compression="zstd", row_group_size=1_200_000)

    target, _ = spliced(source, delete(5, 1_100_000))

    left = np.delete(np.arange(1_200_000) % 3, [5, 1_100_000])
    assert (pq.read_table(target).column("a").to_numpy() == left).all()


def _encrypt(fields: Struct) -> None:
    fields[FileField.ENCRYPTION] = thrift.struct({1: thrift.struct({})})


def _is_old(fields: Struct) -> None:
    created_by = b"parquet-mr version 1.8.1 (build 4aba4da)"
    fields[FileField.CREATED_BY] = thrift.binary(created_by)


def _in_another_file(fields: Struct) -> None:
    chunk = footers.chunks_of(footers.items(fields[FileField.ROW_GROUPS])[0])[0]
    chunk[footers.ChunkField.FILE_PATH] = thrift.binary(b"")


@pytest.mark.parametrize(
    ("change", "reason"),
    [(_encrypt, "encrypted"), (_is_old, "writer is old"), (_in_another_file, "another file")],
)
def test_what_is_not_known_is_rewritten_whole(
    source: Path, change: Callable[[Struct], None], reason: str
) -> None:
    pq.write_table(pa.table({"a": [1, 2, 3]}), source)
    with_footer(source, change)
    target = source.with_name("target.parquet")

    with pytest.raises(NotSpliceableError, match=reason):
        splice(LOCAL, str(source), str(target), delete(0), Compression())

    assert not target.exists()
    if change is not _encrypt:
        written = rewrite(LOCAL, str(source), str(target), delete(0), Compression())
        assert written is not None
        assert pq.read_table(target).column("a").to_pylist() == [2, 3]


@pytest.mark.parametrize(
    ("created_by", "is_old"),
    [
        ("parquet-mr version 1.8.1 (build abc)", True),
        ("parquet-mr version 1.9.0", True),
        ("parquet-mr version 1.10.1 (build abc)", False),
        ("parquet-mr version 1.16.0", False),
        ("parquet-mr version 2.0.0", False),
        ("parquet-mr", True),
        ("parquet-cpp version 1.3.2-SNAPSHOT", True),
        ("parquet-cpp-arrow version 19.0.1", False),
        ("DuckDB version v1.3.0", False),
        ("", False),
    ],
)
def test_old_writers_are_known_by_name(source: Path, created_by: str, is_old: bool) -> None:
    pq.write_table(pa.table({"a": [1]}), source)
    name = thrift.binary(created_by.encode())
    with_footer(source, lambda fields: fields.update({FileField.CREATED_BY: name}))

    if is_old:
        with pytest.raises(NotSpliceableError):
            footer_of(source)
    else:
        footer_of(source)


def test_statistics_that_a_chunk_lacks_or_rounds_are_computed(source: Path) -> None:
    table = pa.table({"a": [5, 1, None, 3], "b": ["q", "c", "d", None], "id": [0, 1, 2, 3]})
    pq.write_table(table, source, write_statistics=["b"])

    def rounded(fields: Struct) -> None:
        chunks = footers.chunks_of(footers.items(fields[FileField.ROW_GROUPS])[0])
        statistics = footers.meta_of(chunks[1])[footers.MetaField.STATISTICS].data
        statistics[footers.StatisticsField.MAX_VALUE] = thrift.binary(b"r")
        statistics[footers.StatisticsField.MAX_IS_EXACT] = thrift.Value(thrift.FALSE, None)

    with_footer(source, rounded)
    target = source.with_name("target.parquet")

    written = splice(
        LOCAL, str(source), str(target), update("id", {0: 9}, pa.int64()), Compression()
    )

    assert written.statistics["a"].to_json() == [1, 5, 1]
    assert written.statistics["b"].to_json() == ["c", "q", 1]
    assert written.statistics["id"].to_json() == [1, 9, 0]


def test_copied_doubles_with_nan_have_no_bounds(source: Path) -> None:
    table = pa.table({"a": [1.0, float("nan")], "b": [1.0, 2.0], "id": [0, 1]})
    pq.write_table(table, source)

    _, written = spliced(source, update("id", {0: 9}, pa.int64()))

    assert written.statistics["a"].to_json() == [None, None, 0, 1]
    assert written.statistics["b"].to_json() == [{"float": (1.0).hex()}, {"float": (2.0).hex()}, 0]


def test_assigned_values_take_the_form_that_the_file_has(source: Path) -> None:
    table = pa.table(
        {
            "bytes": pa.array([Decimal("1.50"), Decimal("-2.25")], pa.decimal128(15, 2)),
            "millis": pa.array([1_700_000_000_123, None], pa.timestamp("ms")),
        }
    )
    pq.write_table(table, source, store_decimal_as_integer=False)
    changes = update("bytes", {1: Decimal("-0.01")}, pa.decimal128(15, 2))

    target, written = spliced(source, changes)

    assert pq.ParquetFile(target).schema.column(0).physical_type == "FIXED_LEN_BYTE_ARRAY"
    assert pq.read_table(target).column("bytes").to_pylist() == [Decimal("1.50"), Decimal("-0.01")]
    assert written.statistics["bytes"].minimum == Decimal("-0.01")
    statistics = pq.ParquetFile(target).metadata.row_group(0).column(0).statistics
    assert (statistics.min, statistics.max) == (Decimal("-0.01"), Decimal("1.50"))
