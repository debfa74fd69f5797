"""Avro values are the values of columns, without loss."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.landing.avro_writing import (
    DECIMAL,
    FIXED,
    FIXED_DECIMAL,
    SUIT,
    logical,
    read_avro,
    record,
    write,
    write_as,
)

INSTANT = dt.datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=dt.UTC)
LOCAL_TIME = dt.datetime(2024, 2, 29, 12, 30, 0, 1)  # noqa: DTZ001 - local by meaning


@pytest.mark.parametrize(
    ("kind", "type_name", "value", "expected"),
    [
        ("boolean", "BOOLEAN", True, True),
        ("int", "INT", -(2**31), -(2**31)),
        ("int", "BIGINT", 7, 7),
        ("int", "TINYINT", -128, -128),
        ("int", "DOUBLE", 2**31 - 1, 2147483647.0),
        ("int", "DECIMAL(6,2)", -9999, Decimal("-9999.00")),
        ("long", "BIGINT", 2**63 - 1, 2**63 - 1),
        ("long", "INT", 5, 5),
        ("long", "DOUBLE", 2**53, 2.0**53),
        ("float", "FLOAT", 0.5, 0.5),
        ("float", "DOUBLE", 0.1, 0.10000000149011612),
        ("double", "DOUBLE", 1e300, 1e300),
        ("double", "DOUBLE", math.inf, math.inf),
        ("double", "FLOAT", 0.5, 0.5),
        ("string", "STRING", "é\0", "é\0"),
        ("string", "INT", " 17", 17),
        ("string", "DATE", "2024-02-29", dt.date(2024, 2, 29)),
        ("bytes", "BINARY", b"\0\xff", b"\0\xff"),
        (FIXED, "BINARY", b"abcd", b"abcd"),
        (SUIT, "STRING", "SPADES", "SPADES"),
        (logical("string", "uuid"), "STRING", uuid.UUID(int=1), str(uuid.UUID(int=1))),
        (logical("int", "date"), "DATE", dt.date(1, 1, 1), dt.date(1, 1, 1)),
        (logical("int", "date"), "DATE", dt.date(9999, 12, 31), dt.date(9999, 12, 31)),
        (logical("long", "timestamp-millis"), "TIMESTAMP", INSTANT, INSTANT),
        (logical("long", "timestamp-micros"), "TIMESTAMP", INSTANT, INSTANT),
        (logical("long", "local-timestamp-micros"), "TIMESTAMP_NTZ", LOCAL_TIME, LOCAL_TIME),
        (DECIMAL, "DECIMAL(10,2)", Decimal("-12345678.90"), Decimal("-12345678.90")),
        (DECIMAL, "DECIMAL(38,10)", Decimal("0.01"), Decimal("0.01")),
        (DECIMAL, "DECIMAL(3,1)", Decimal("12.30"), Decimal("12.3")),
        (FIXED_DECIMAL, "DECIMAL(6,3)", Decimal("-0.001"), Decimal("-0.001")),
        (logical("string", "no such type"), "STRING", "x", "x"),
        (["null", "long"], "BIGINT", 5, 5),
        (["int", "null", "long"], "BIGINT", 2**40, 2**40),
        (["float", "double"], "DOUBLE", 0.5, 0.5),
    ],
)
def test_values(tmp_path: Path, kind: Any, type_name: str, value: Any, expected: Any) -> None:
    path = write(tmp_path, record(v=kind), [{"v": value}])

    assert read_avro(path, f"v {type_name}").values == [expected]


@pytest.mark.parametrize("type_name", ["INT", "STRING", "DATE", "DECIMAL(6,2)"])
@pytest.mark.parametrize("kind", ["null", ["null", "string"], ["string", "null"]])
def test_nulls(tmp_path: Path, kind: Any, type_name: str) -> None:
    path = write(tmp_path, record(v=kind), [{"v": None}])

    assert read_avro(path, f"v {type_name}").values == [None]


@pytest.mark.parametrize(
    ("kind", "type_name", "value"),
    [
        ("long", "INT", 2**31),
        ("long", "TINYINT", 128),
        ("int", "DECIMAL(6,2)", 10000),
        ("long", "DOUBLE", 2**53 + 1),
        ("int", "FLOAT", 2**24 + 1),
        ("double", "FLOAT", 0.1),
        ("double", "FLOAT", 1e300),
        ("string", "INT", "x"),
        ("string", "DATE", "2024-13-01"),
        (SUIT, "BOOLEAN", "SPADES"),
        (DECIMAL, "DECIMAL(10,1)", Decimal("0.01")),
        (DECIMAL, "DECIMAL(6,2)", Decimal("12345.00")),
    ],
)
def test_what_is_no_value(tmp_path: Path, kind: Any, type_name: str, value: Any) -> None:
    schema = record(id="int", v=["null", kind])
    rows = [{"id": 1, "v": None}, {"id": 2, "v": value}, {"id": 3, "v": None}]
    found = read_avro(write(tmp_path, schema, rows), f"id INT, v {type_name}")

    assert found.rows == [(1, None), (3, None)]
    [bad] = found.bad
    assert bad.location.record == 2
    assert (bad.problem.column, bad.problem.expected) == ("v", type_name)
    assert '"id": 2' in bad.text


@pytest.mark.parametrize(
    ("kind", "type_name", "value"),
    [
        (logical("int", "date"), "DATE", 2**31 - 1),
        (logical("int", "date"), "DATE", -719163),
        (logical("long", "timestamp-millis"), "TIMESTAMP", 2**63 - 1),
        (logical("long", "timestamp-micros"), "TIMESTAMP", -62135596800000001),
        (logical("long", "local-timestamp-millis"), "TIMESTAMP_NTZ", 253402300800000),
    ],
)
def test_times_beyond_the_calendar(
    tmp_path: Path, kind: dict[str, Any], type_name: str, value: int
) -> None:
    path = write_as(tmp_path, record(v=kind), record(v=kind["type"]), [{"v": value}])

    found = read_avro(path, f"v {type_name}")

    assert found.rows == []
    assert found.reasons == [(1, f"is not a valid {type_name}: it lies beyond the years 1 to 9999")]


@pytest.mark.parametrize(
    ("name", "type_name", "expected"),
    [
        ("timestamp-nanos", "TIMESTAMP", INSTANT),
        ("local-timestamp-nanos", "TIMESTAMP_NTZ", INSTANT.replace(tzinfo=None)),
    ],
)
def test_nanoseconds(tmp_path: Path, name: str, type_name: str, expected: dt.datetime) -> None:
    rows = [{"v": -1_000_000}, {"v": 1}, {"v": -1}]
    path = write_as(tmp_path, record(v=logical("long", name)), record(v="long"), rows)

    found = read_avro(path, f"v {type_name}")

    assert found.values == [expected]
    assert [bad.location.record for bad in found.bad] == [2, 3]
    assert "parts of a microsecond" in found.bad[0].problem.reason


def test_a_decimal_of_more_digits_than_its_own_type(tmp_path: Path) -> None:
    schema = record(v=logical("bytes", "decimal", precision=2, scale=0))
    rows = [{"v": number.to_bytes(16, "big", signed=True)} for number in (12, -(10**37), 10**38)]
    path = write_as(tmp_path, schema, record(v="bytes"), [*rows, {"v": b"\x7f" * 5000}])

    found = read_avro(path, "v DECIMAL(38,0)")

    assert found.values == [12, -(10**37)]
    assert [bad.location.record for bad in found.bad] == [3, 4]
