"""Files that hold another type than their table: read by value, or refused by name."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_jobs.errors import NotSupportedError
from tests.writers.checks import by_library, by_spark
from tests.writers.foreign_tables import ForeignTable
from tests.writers.history import changed

pytestmark = pytest.mark.slow

Format = Literal["paimon", "iceberg"]
FORMATS: Final[Sequence[Format]] = ("paimon", "iceberg")
_FIRST: Final = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
_TIMES: Final = [_FIRST + dt.timedelta(milliseconds=n) for n in range(5)]
_NUMBERS: Final = [None, 0, 1, 100, 127]
_AMOUNTS: Final = [None, *(Decimal(n) / 4 for n in range(4))]


def _times(unit: str, zone: str | None) -> pa.Array:
    plain = [each if zone else each.replace(tzinfo=None) for each in _TIMES]
    return pa.array(plain, pa.timestamp(unit, zone))


# Name: the table's type in Spark's SQL, what the file holds.
_READ: Final[Mapping[str, tuple[str, pa.Array]]] = {
    "narrower": ("int", pa.array(_NUMBERS, pa.int8())),
    "short": ("int", pa.array(_NUMBERS, pa.int16())),
    "unsigned": ("int", pa.array([None, 0, 255, 1, 2], pa.uint8())),
    "unsigned_short": ("int", pa.array([None, 0, 2**16 - 1, 1, 2], pa.uint16())),
    "unsigned_long": ("bigint", pa.array([None, 0, 2**63 - 1, 1, 2], pa.uint64())),
    "fixed": ("binary", pa.array([None, b"abc", b"\xff\0a", b"abc", b"abc"], pa.binary(3))),
    "text_as_bytes": ("binary", pa.array([None, "", "ß", "a", "b"])),
    "bytes_as_text": ("string", pa.array([None, b"", "ß".encode(), b"a", b"b"])),
    "less_digits": ("decimal(20,2)", pa.array(_AMOUNTS, pa.decimal128(9, 2))),
    "milliseconds": ("timestamp_ntz", _times("ms", None)),
    "nanoseconds": ("timestamp_ntz", _times("ns", None)),
    "nanoseconds_in_utc": ("timestamp", _times("ns", "UTC")),
    "without_zone": ("timestamp", _times("us", None)),
    "with_zone": ("timestamp_ntz", _times("us", "UTC")),
    "nested": (
        "struct<x:int,y:array<binary>>",
        pa.array(
            [{"x": n, "y": [b"ab"]} for n in range(5)],
            pa.struct([("x", pa.uint8()), ("y", pa.list_(pa.binary(2)))]),
        ),
    ),
}
_READ_BY_ICEBERG: Final[Mapping[str, tuple[str, pa.Array]]] = {
    "promoted": ("bigint", pa.array(_NUMBERS, pa.int32())),
    "promoted_unsigned": ("bigint", pa.array([None, 0, 2**32 - 1, 1, 2], pa.uint32())),
    "promoted_real": ("double", pa.array(_NUMBERS, pa.float32())),
}
_REFUSED: Final[Mapping[str, tuple[str, pa.Array, str]]] = {
    "longer": ("int", pa.array(_NUMBERS, pa.int64()), "holds int64 in column longer"),
    "unsigned_int": ("int", pa.array(_NUMBERS, pa.uint32()), "holds uint32"),
    "real": ("float", pa.array(_NUMBERS, pa.float64()), "holds double"),
    "half": ("float", pa.array([0.0] * 5, pa.float32()).cast(pa.float16()), "holds halffloat"),
    "whole": ("double", pa.array(_NUMBERS, pa.int32()), "holds int32"),
    "text": ("int", pa.array(["1"] * 5), "holds string"),
    "fixed_text": ("string", pa.array([b"abc"] * 5, pa.binary(3)), "holds fixed_size_binary[3]"),
    "other_scale": ("decimal(9,2)", pa.array(_AMOUNTS, pa.decimal128(9, 3)), "decimal128(9, 3)"),
    "more_digits": ("decimal(9,2)", pa.array(_AMOUNTS, pa.decimal128(12, 2)), "decimal128(12, 2)"),
    "number_as_time": ("timestamp", pa.array(_NUMBERS, pa.int64()), "holds int64"),
    "time_as_date": ("date", _times("us", None), "holds timestamp[us] in column time_as_date"),
    "list": ("array<int>", pa.array(_NUMBERS, pa.int32()), "holds int32 in column list"),
}
# Right types, but a value that is none of the table's.
_BAD_VALUES: Final[Mapping[str, tuple[str, pa.Array, str]]] = {
    "not_utf8": ("string", pa.array([b"\xff"] * 5), "Invalid UTF8"),
    "too_large": ("bigint", pa.array([2**64 - 1] * 5, pa.uint64()), "18446744073709551615"),
    "too_fine": ("timestamp_ntz", pa.array([1] * 5, pa.timestamp("ns")), "would lose data"),
}


def table_of(
    folder: Path, format_: Format, columns: Mapping[str, tuple[Any, ...]], *, marks: bool = False
) -> ForeignTable:
    """A table with a file of these columns and ``id``."""
    table = ForeignTable(folder / "table", format_, marks)
    table.create({"id": "bigint", **{name: each[0] for name, each in columns.items()}})
    file = folder / "other.parquet"
    held = {"id": pa.array(range(5), pa.int64()), **{n: each[1] for n, each in columns.items()}}
    pq.write_table(pa.table(held), file, store_schema=False)
    table.put([file])
    return table


def values_in(columns: Mapping[str, tuple[str, pa.Array]]) -> list[dict[str, Any]]:
    """The rows as the table's types have them."""
    names = {
        name: [_value(kind, each) for each in held.to_pylist()]
        for name, (kind, held) in columns.items()
    }
    return [{"id": n, **{name: each[n] for name, each in names.items()}} for n in range(5)]


def _value(kind: str, value: Any) -> Any:
    if isinstance(value, dt.datetime):
        value = dt.datetime.fromisoformat(str(value)).replace(tzinfo=None)
        return value.replace(tzinfo=dt.UTC) if kind == "timestamp" else value
    if isinstance(value, str | bytes):
        text = kind == "string"
        return value if isinstance(value, str) == text else _converted(value)
    return value


def _converted(value: str | bytes) -> str | bytes:
    return value.encode() if isinstance(value, str) else value.decode()


@pytest.mark.parametrize("marks", [False, True])
@pytest.mark.parametrize("format_", FORMATS)
def test_types_that_are_read(
    spark: SparkSession, tmp_path: Path, format_: Format, marks: bool
) -> None:
    columns = {**_READ, **(_READ_BY_ICEBERG if format_ == "iceberg" else {})}
    table = table_of(tmp_path, format_, columns, marks=marks)
    names = ["id", *columns]
    expected = values_in(columns)

    assert by_spark(spark, table, names) == expected

    changed(spark, table, "UPDATE db.t SET id = 10 WHERE id = 0 AND narrower IS NULL")
    expected = [*expected[1:], {**expected[0], "id": 10}]
    assert by_spark(spark, table, names) == expected
    assert by_library(table, ["id"]) == [{"id": each["id"]} for each in expected]


@pytest.mark.parametrize("format_", FORMATS)
def test_types_that_are_refused(spark: SparkSession, tmp_path: Path, format_: Format) -> None:
    columns = dict(_REFUSED)
    if format_ == "paimon":
        columns |= {name: (*each, "holds") for name, each in _READ_BY_ICEBERG.items()}
    table = table_of(tmp_path, format_, columns)

    for name, (_, _, problem) in columns.items():
        with pytest.raises(NotSupportedError) as raised:
            by_spark(spark, table, ["id", name])
        assert problem in raised.value.message
        assert str(table.live_files()[0]) in raised.value.message
        assert f"column {name}, but its" in raised.value.message.replace(", not a", ", but its")


@pytest.mark.parametrize("format_", FORMATS)
def test_values_that_are_none_of_the_type(
    spark: SparkSession, tmp_path: Path, format_: Format
) -> None:
    table = table_of(tmp_path, format_, _BAD_VALUES)

    for name, (_, _, problem) in _BAD_VALUES.items():
        message = f"UPDATE db.t SET id = 1 WHERE {name} IS NOT NULL"
        with pytest.raises(AssertionError, match="NOT_SUPPORTED") as raised:
            changed(spark, table, message)
        assert problem in str(raised.value)
        assert f"in column {name}" in str(raised.value)


@pytest.mark.parametrize("format_", FORMATS)
def test_columns_in_another_order_and_other_columns(
    spark: SparkSession, tmp_path: Path, format_: Format
) -> None:
    table = ForeignTable(tmp_path / "table", format_, marks=False)
    table.create({"id": "bigint", "v": "int", "w": "string"})
    file = tmp_path / "other.parquet"
    pq.write_table(
        pa.table({"x": [1], "w": ["a"], "V": [2], "id": [3], "v": pa.array([4], pa.int32())}), file
    )
    table.put([file])

    changed(spark, table, "UPDATE db.t SET w = 'b' WHERE v = 4")

    assert by_library(table, ["id", "v", "w"]) == [{"id": 3, "v": 4, "w": "b"}]


def test_a_column_whose_name_differs_in_case(spark: SparkSession, tmp_path: Path) -> None:
    table = ForeignTable(tmp_path / "table", "paimon", marks=False)
    table.create({"id": "bigint", "v": "int"})
    file = tmp_path / "other.parquet"
    pq.write_table(pa.table({"id": [3], "V": pa.array([4], pa.int32())}), file)
    table.put([file])

    with pytest.raises(NotSupportedError, match="has no column v, which its schema has"):
        by_spark(spark, table, ["id", "v"])


@pytest.mark.parametrize("format_", FORMATS)
def test_pages_that_only_java_decodes(spark: SparkSession, tmp_path: Path, format_: Format) -> None:
    import duckdb

    table = ForeignTable(tmp_path / "table", format_, marks=False)
    table.create({"id": "bigint", "v": "int"})
    file = tmp_path / "other.parquet"
    rows = (
        "SELECT range AS id, CASE range % 2 WHEN 0 THEN 2147483647 ELSE -2147483648 END::INT AS v "
        "FROM range(99)"
    )
    how = "FORMAT parquet, PARQUET_VERSION V2, DICTIONARY_SIZE_LIMIT 1"
    duckdb.execute(f"COPY ({rows}) TO '{file}' ({how})")
    table.put([file])
    assert len(by_spark(spark, table, ["id", "v"])) == 99

    with pytest.raises(AssertionError, match=r"NOT_SUPPORTED.*DELTA_BINARY_PACKED pages of DuckDB"):
        changed(spark, table, "DELETE FROM db.t WHERE id = 7")
