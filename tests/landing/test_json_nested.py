"""Arrays, maps and structs are held to the same rules as columns."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.landing.records import Column
from tests.landing.conftest import ReadJson

LIST = pa.list_(pa.int32())
STRUCT = pa.struct([("a", pa.int32()), ("b", pa.string())])


def of(kind: pa.DataType) -> tuple[Column, ...]:
    return (Column("v", kind, str(kind)),)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (LIST, '[1, null, "3"]', [1, None, 3]),
        (LIST, "[]", []),
        (pa.list_(pa.list_(pa.string())), '[["x", 1.0], null]', [["x", "1.0"], None]),
        (pa.list_(pa.date32()), '["2024-02-29"]', [dt.date(2024, 2, 29)]),
        (pa.list_(pa.binary()), '["AP8="]', [b"\x00\xff"]),
        (pa.list_(pa.string()), '[{"x": 1}, [ ]]', ['{"x": 1}', "[ ]"]),
        (pa.list_(pa.decimal128(38, 18)), "[1.5]", [Decimal("1.5")]),
        (STRUCT, '{"a":1,"b":"x"}', {"a": 1, "b": "x"}),
        (STRUCT, '{"B":"x","A":1}', {"a": 1, "b": "x"}),
        (STRUCT, '{"b":{"c": 1},"c":[]}', {"a": None, "b": '{"c": 1}'}),
        (STRUCT, "{}", {"a": None, "b": None}),
        (pa.struct([("s", STRUCT)]), '{"s":{"a":1}}', {"s": {"a": 1, "b": None}}),
        (pa.map_(pa.string(), pa.int32()), '{"x":1,"X":null}', [("x", 1), ("X", None)]),
        (pa.map_(pa.int32(), LIST), '{"1":[2]}', [(1, [2])]),
        (pa.map_(pa.date32(), pa.string()), '{"2024-02-29":0}', [(dt.date(2024, 2, 29), "0")]),
    ],
)
def test_values(read_json: ReadJson, kind: pa.DataType, value: str, expected: Any) -> None:
    found = read_json(f'{{"v":{value}}}\n{{"v":null}}\n{{}}\n', of(kind))

    assert not found.bad
    assert found.values == [expected, None, None]


@pytest.mark.parametrize(
    ("kind", "value", "column", "expected"),
    [
        (LIST, "[1, 2147483648]", "v.element", "INT"),
        (LIST, "[1.0]", "v.element", "INT"),
        (LIST, '{"0":1}', "v", "list<item: int32>"),
        (LIST, '"[1]"', "v", "list<item: int32>"),
        (STRUCT, '{"a":"x"}', "v.a", "INT"),
        (STRUCT, "[1]", "v", str(STRUCT)),
        (STRUCT, '{"a":1,"a":2}', "v", str(STRUCT)),
        (STRUCT, '{"a":1,"A":2}', "v", str(STRUCT)),
        (STRUCT, '{"b":"\\ud800"}', "v.b", "STRING"),
        (pa.struct([("s", pa.list_(STRUCT))]), '{"s":[{"a":true}]}', "v.s.element.a", "INT"),
        (pa.list_(pa.date32()), "[5]", "v.element", "DATE"),
        (pa.list_(pa.float64()), "[1e400]", "v.element", "DOUBLE"),
        (pa.list_(pa.decimal128(6, 2)), "[12345]", "v.element", "DECIMAL(6,2)"),
        (pa.list_(pa.decimal128(38, 18)), "[1e30]", "v.element", "DECIMAL(38,18)"),
        (pa.map_(pa.int32(), pa.int32()), '{"x":1}', "v.key", "INT"),
        (pa.map_(pa.int32(), pa.int32()), '{"1":1,"01":2}', "v", "map<int32, int32>"),
        (pa.map_(pa.string(), pa.int32()), '{"x":1,"x":2}', "v", "map<string, int32>"),
        (pa.map_(pa.string(), pa.int32()), '{"x":"y"}', "v.value", "INT"),
        (pa.map_(pa.string(), pa.int32()), "[]", "v", "map<string, int32>"),
    ],
)
def test_what_is_no_value(
    read_json: ReadJson, kind: pa.DataType, value: str, column: str, expected: str
) -> None:
    found = read_json(f'{{"v":null}}\n{{"v":{value}}}\n{{"v":null}}\n', of(kind))

    assert found.values == [None, None]
    [bad] = found.bad
    assert (bad.location, bad.problem.column, bad.problem.expected) == ((2, 2), column, expected)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.list_(pa.field("element", pa.int32(), nullable=False)), "[1, null]"),
        (pa.struct([pa.field("a", pa.int32(), nullable=False)]), '{"a":null}'),
        (pa.struct([pa.field("a", pa.int32(), nullable=False)]), "{}"),
    ],
)
def test_parts_that_are_not_null(read_json: ReadJson, kind: pa.DataType, value: str) -> None:
    found = read_json(f'{{"v":{value}}}\n{{"v":null}}\n', of(kind))

    assert found.values == [None]
    assert "NOT NULL" in found.bad[0].problem.reason


def test_many_structs_with_other_fields(read_json: ReadJson) -> None:
    lines = [f'{{"v":{{"a":{i},"b":"x","c":{{"k{i}":1}}}}}}' for i in range(300)]
    found = read_json("\n".join(lines), of(STRUCT))

    assert found.values == [{"a": i, "b": "x"} for i in range(300)]
    assert found.seen == {"v"}
