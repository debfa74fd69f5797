"""What JSON values are as values of a column, and which are none."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pytest

from tests.landing.conftest import ReadJson

DAY = dt.date(2024, 2, 29)
TIME = dt.datetime(2024, 2, 29, 12, 30)  # noqa: DTZ001 - local by meaning
DIGITS = "12345678901234567890123456789012345678"


@pytest.mark.parametrize(
    ("type_name", "value", "expected"),
    [
        ("TINYINT", "-128", -128),
        ("SMALLINT", "32767", 32767),
        ("INT", "-2147483648", -2147483648),
        ("INT", "-0", 0),
        ("INT", '"17"', 17),
        ("INT", '" +17 "', 17),
        ("BIGINT", "9223372036854775807", 9223372036854775807),
        ("DOUBLE", "5", 5.0),
        ("DOUBLE", "1e-400", 0.0),
        ("DOUBLE", "9007199254740993", 9007199254740992.0),
        ("DOUBLE", '"1.5e3"', 1500.0),
        ("DOUBLE", "Infinity", math.inf),
        ("DOUBLE", "-Infinity", -math.inf),
        ("DOUBLE", '"-INF"', -math.inf),
        ("DOUBLE", '"+Infinity"', math.inf),
        ("FLOAT", "16777217", 16777216.0),
        ("DECIMAL(6,2)", "12.340", Decimal("12.34")),
        ("DECIMAL(6,2)", "1e3", Decimal("1000.00")),
        ("DECIMAL(6,2)", "1234e-2", Decimal("12.34")),
        ("DECIMAL(6,2)", '"-9999.99"', Decimal("-9999.99")),
        ("DECIMAL(38,18)", "0.1", Decimal("0.100000000000000000")),
        ("DECIMAL(38,0)", DIGITS, Decimal(DIGITS)),
        ("DECIMAL(38,38)", "0.5", Decimal("0.5")),
        ("DECIMAL(38,10)", "1e27", Decimal(10**27)),
        ("DECIMAL(6,2)", "0e-2000000000", Decimal("0.00")),
        ("BOOLEAN", "true", True),
        ("BOOLEAN", '"False"', False),
        ("BOOLEAN", '"1"', True),
        ("DATE", '"2024-02-29"', DAY),
        ("TIMESTAMP", '"2024-02-29T12:30:00Z"', TIME.replace(tzinfo=dt.UTC)),
        ("TIMESTAMP_NTZ", '"2024-02-29 12:30"', TIME),
        ("BINARY", '"AP8="', b"\x00\xff"),
        ("BINARY", '""', b""),
        ("STRING", '" x "', " x "),
        ("STRING", '""', ""),
        ("STRING", '"\\ud83d\\ude00\\n\\u0000"', "😀\n\0"),
        ("STRING", "1.50", "1.50"),
        ("STRING", "-0", "-0"),
        ("STRING", "1E400", "1E400"),
        ("STRING", "true", "true"),
        ("STRING", "NaN", "NaN"),
        ("STRING", '[1, "\\u00e9" ]', '[1, "\\u00e9" ]'),
        ("STRING", '{"b": 1,  "a":[ ]}', '{"b": 1,  "a":[ ]}'),
        ("STRING", '{"a":"\\ud800"}', '{"a":"\\ud800"}'),
    ],
)
@pytest.mark.parametrize("count", [1, 40])
def test_values(read_json: ReadJson, type_name: str, value: str, expected: Any, count: int) -> None:
    found = read_json(f'{{"v":{value}}}\n{{"v":null}}\n' * count, f"v {type_name}")

    assert not found.bad
    assert found.values == [expected, None] * count


def test_not_a_number(read_json: ReadJson) -> None:
    found = read_json('{"v":NaN}\n{"v":"NaN"}\n', "v DOUBLE")

    assert [math.isnan(value) for value in found.values] == [True, True]


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        ("TINYINT", "128"),
        ("INT", "2147483648"),
        ("INT", "1.0"),
        ("INT", "1e3"),
        ("INT", "true"),
        ("INT", "NaN"),
        ("INT", '"x"'),
        ("INT", '""'),
        ("INT", '"0x1F"'),
        ("INT", "[]"),
        ("INT", "{}"),
        ("BIGINT", "9223372036854775808"),
        ("DOUBLE", "1e400"),
        ("DOUBLE", "-1e999999999999"),
        ("DOUBLE", "true"),
        ("DOUBLE", '"Inf"'),
        ("DOUBLE", '"1e400"'),
        ("FLOAT", "3.5e38"),
        ("DECIMAL(6,2)", "12.345"),
        ("DECIMAL(6,2)", "12345"),
        ("DECIMAL(6,2)", "1e-2000000000"),
        ("DECIMAL(6,2)", "1e2000000000"),
        ("DECIMAL(6,2)", '"1e-2000000000"'),
        ("DECIMAL(6,2)", '"1e0x1"'),
        ("DECIMAL(6,2)", '"1e\\u0030x1"'),
        ("DECIMAL(6,2)", '"\\u0031\\u0065-2000000000"'),
        ("DECIMAL(6,2)", "NaN"),
        ("DECIMAL(6,2)", "true"),
        ("DECIMAL(38,18)", "123456789012345678901234567890"),
        ("DECIMAL(38,10)", "1e30"),
        ("DECIMAL(38,38)", "1"),
        ("DECIMAL(38,0)", DIGITS + "9"),
        ("DECIMAL(38,0)", DIGITS + ".5"),
        ("BOOLEAN", "1"),
        ("BOOLEAN", '"si"'),
        ("BOOLEAN", "[true]"),
        ("DATE", '"2024-13-45"'),
        ("DATE", '"29.02.2024"'),
        ("DATE", "true"),
        ("TIMESTAMP", '"2024-02-30"'),
        ("TIMESTAMP_NTZ", '"2024-02-29T12:30:00Z"'),
        ("BINARY", '"AP8"'),
        ("BINARY", '"AP9="'),
        ("BINARY", '"A P8="'),
        ("BINARY", '"é"'),
        ("BINARY", "1234"),
        ("STRING", '"\\ud800"'),
        ("STRING", '"\\udc00x"'),
    ],
)
@pytest.mark.parametrize("count", [1, 40])
def test_what_is_no_value(read_json: ReadJson, type_name: str, value: str, count: int) -> None:
    good = '{"v":null,"id":1}\n'
    found = read_json(good * count + f'{{"v":{value},"id":2}}\n' + good, f"v {type_name}, id INT")

    assert found.rows == [(None, 1)] * (count + 1)
    assert [bad.location for bad in found.bad] == [(count + 1, count + 1)]
    problem = found.bad[0].problem
    assert (problem.column, problem.expected) == ("v", type_name)
    assert problem.reason.startswith(f"is not a valid {type_name}")
    assert found.bad[0].text == f'{{"v":{value},"id":2}}'


@pytest.mark.parametrize("value", ["1709210400", "1709210400000", "1.5"])
@pytest.mark.parametrize("type_name", ["DATE", "TIMESTAMP", "TIMESTAMP_NTZ"])
def test_a_number_is_no_time(read_json: ReadJson, type_name: str, value: str) -> None:
    [bad] = read_json(f'{{"at":{value}}}\n', f"at {type_name}").bad

    assert (bad.problem.value, bad.problem.reason) == (
        value,
        f"is not a valid {type_name}: it is a number",
    )
    assert "BIGINT" in bad.problem.remedy
    assert "timestamp_millis" in bad.problem.remedy


def test_values_of_one_column_may_be_written_differently(read_json: ReadJson) -> None:
    found = read_json('{"v":1}\n{"v":"2"}\n{"v":null}\n{"v":3.0}\n', "v DECIMAL(6,2)")

    assert found.values == [Decimal(1), Decimal(2), None, Decimal(3)]


def test_a_problem_shows_texts_as_they_are(read_json: ReadJson) -> None:
    found = read_json('{"v":"x\\u00e9"}\n{"v":[1, 2]}\n{"v":true}\n', "v INT")

    assert [bad.problem.value for bad in found.bad] == ["xé", "[1, 2]", "true"]


def test_a_problem_shows_no_more_than_a_part_of_a_long_value(read_json: ReadJson) -> None:
    [bad] = read_json(f'{{"v":"{"x" * 100_000}"}}\n', "v INT").bad

    assert bad.problem.value is not None
    assert len(bad.problem.value) < 2000
