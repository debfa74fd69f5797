"""Avro files of Java writers in any time zone: each type is read and carried over as it is."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from spark_jobs.contract.statements import (
    Assignment,
    DeleteAction,
    InsertAction,
    MergeCase,
    UpdateAction,
)
from tests.judge.judge import read_with_java
from tests.judge.merging import delete, merge, update
from tests.judge.writer import JavaTable
from tests.support.judged_values import Number, differences

DAY = 86_400_000_000_000
FIRST = -719_162 * DAY  # 0001-01-01
LAST = 2_932_897 * DAY - 1_000  # 9999-12-31
NUMBERS = [Number(text) for text in ("0.1", "-0.0", "0.0", "nan", "inf", "-inf")]


def struct(**kinds):
    fields = [{"id": i, "name": n, "type": kind} for i, (n, kind) in enumerate(kinds.items(), 100)]
    return {"type": "ROW", "fields": fields}


def array(element):
    return {"type": "ARRAY", "element": element}


def mapping(key, value):
    return {"type": "MAP", "key": key, "value": value}


def times(unit):
    return [value - value % unit for value in (FIRST, -1, 0, 1_710_054_000_123_456_000, LAST)]


COLUMNS = {
    "flag": ("BOOLEAN", [True, False]),
    "tiny": ("TINYINT", [-128, 127]),
    "small": ("SMALLINT", [-32768, 32767]),
    "whole": ("INT", [-(2**31), 2**31 - 1]),
    "big": ("BIGINT", [-(2**63), 2**63 - 1, 2**53 + 1]),
    "real": ("FLOAT", [Number(pa.scalar(each, pa.float32()).as_py()) for each in NUMBERS]),
    "number": ("DOUBLE", [*NUMBERS, Number(5e-324)]),
    "price": ("DECIMAL(9, 2)", [Decimal("0.00"), Decimal("-9999999.99"), Decimal("9999999.99")]),
    "long": ("DECIMAL(18, 0)", [Decimal(10**18 - 1), Decimal(-128)]),
    "wide": ("DECIMAL(38, 38)", [Decimal(f"0.{'9' * 38}"), Decimal(f"-0.{'0' * 37}1")]),
    "text": ("STRING", ["", "Zürich 東京 👩‍🚀", "x" * 100_000]),
    "fixed": ("CHAR(3)", ["abc", "a  "]),
    "short": ("VARCHAR(3)", ["", "é"]),
    "raw": ("BYTES", [b"", b"\x00\xff"]),
    "code": ("BINARY(2)", [b"xy"]),
    "day": ("DATE", [date(1, 1, 1), date(1582, 10, 10), date(1969, 12, 31), date(9999, 12, 31)]),
    "at0": ("TIMESTAMP(0)", times(10**9)),
    "at3": ("TIMESTAMP(3)", times(10**6)),
    "at6": ("TIMESTAMP(6)", times(10**3)),
    "instant0": ("TIMESTAMP(0) WITH LOCAL TIME ZONE", times(10**9)),
    "instant3": ("TIMESTAMP(3) WITH LOCAL TIME ZONE", times(10**6)),
    "instant6": ("TIMESTAMP(6) WITH LOCAL TIME ZONE", times(10**3)),
    "schlüssel": ("INT", [1]),
    "list": (array("TIMESTAMP(3) WITH LOCAL TIME ZONE"), [[], [None, *times(10**6)]]),
    "texts": (mapping("STRING", array("INT")), [{}, {"": None, "k": [1, None]}]),
    "numbers": (mapping("INT", "DECIMAL(4, 1)"), [{}, {1: Decimal("-0.1"), 2: None}]),
    "moments": (mapping("TIMESTAMP(6)", "DATE"), [{LAST: date(1, 1, 1)}]),
    "point": (
        struct(x="INT NOT NULL", l={"type": "ARRAY NOT NULL", "element": "STRING NOT NULL"}),
        [{"x": 1, "l": ["a"]}, {"x": 2, "l": []}],
    ),
    "row": (
        struct(a=struct(b="BOOLEAN", ä="TINYINT"), c=array(struct(d="BYTES"))),
        [{"a": None, "c": None}, {"a": {"b": True, "ä": -1}, "c": [None, {"d": b""}, {"d": None}]}],
    ),
}
KINDS = {"id": "BIGINT NOT NULL", "v": "INT", **{name: kind for name, (kind, _) in COLUMNS.items()}}
CASES = [
    MergeCase("matched", DeleteAction(), "s.v = 2"),
    MergeCase("matched", UpdateAction((Assignment("v", "s.v"),))),
    MergeCase("not_matched", InsertAction(values=("s.id", "s.v"), columns=("id", "v"))),
]


def rows_of(ids):
    return [
        {"id": id_, "v": None}
        | {name: [*values, None][id_ % (len(values) + 1)] for name, (_, values) in COLUMNS.items()}
        for id_ in ids
    ]


@pytest.mark.parametrize(
    ("zone", "options"),
    [
        ("America/New_York", {}),
        ("Asia/Kolkata", {"avro.codec": "deflate", "deletion-vectors.enabled": "true"}),
        ("UTC", {"avro.codec": "snappy", "bucket": "2", "bucket-key": "id"}),
    ],
)
def test_every_type(spark, warehouse, zone, options):
    options = {"file.format": "avro", **options}
    table = replace(JavaTable.of_types(warehouse.path, "d.t", KINDS, (), options), zone=zone)
    rows = {row["id"]: row for row in rows_of(range(60))}
    table.append_rows(rows_of(range(40)))
    table.append_rows(rows_of(range(40, 60)))
    assert not differences(read_with_java(warehouse.path, "d.t"), rows.values())

    source = pa.table({"id": [1, 2, 3, 100], "v": pa.array([1, 2, 3, 4], pa.int32())})
    assert merge(spark, warehouse, source, CASES).error is None
    rows[1]["v"], rows[3]["v"] = 1, 3
    del rows[2]
    rows[100] = dict.fromkeys(KINDS) | {"id": 100, "v": 4}
    assert not differences(warehouse.both_readers("d.t"), rows.values())

    assert update(spark, warehouse, {"v": "9"}, "id >= 0").error is None
    for row in rows.values():
        row["v"] = 9
    assert not differences(warehouse.both_readers("d.t"), rows.values())
    assert all(file.name.endswith(".parquet") for file in warehouse.checked_files("d.t"))


EQUAL = {
    "whole": ("-2147483648", -(2**31)),
    "wide": ("0.99999999999999999999999999999999999999", Decimal(f"0.{'9' * 38}")),
    "day": ("DATE'0001-01-01'", date(1, 1, 1)),
    "at3": ("TIMESTAMP_NTZ'1969-12-31 23:59:59.999'", -1_000_000),
    "instant6": ("TIMESTAMP'9999-12-31 23:59:59.999999Z'", LAST),
    "text": ("'Zürich 東京 👩‍🚀'", "Zürich 東京 👩‍🚀"),
    "code": ("X'7879'", b"xy"),
    "real": ("double('NaN')", Number("nan")),
}


def test_conditions(spark, warehouse):
    table = JavaTable.of_types(warehouse.path, "d.t", KINDS, (), {"file.format": "avro"})
    rows = rows_of(range(30))
    table.append_rows(rows)
    assert delete(spark, warehouse, "instant3 = TIMESTAMP'1969-12-31 23:59:59.999Z'").error is None
    rows = [row for row in rows if row["instant3"] != -1_000_000]
    assert not differences(read_with_java(warehouse.path, "d.t"), rows)

    bits = [f"{2**n} * int({name} <=> {text})" for n, (name, (text, _)) in enumerate(EQUAL.items())]
    assert update(spark, warehouse, {"v": " + ".join(bits)}, "id >= 0").error is None

    for row in rows:
        found = (row[name] == value for name, (_, value) in EQUAL.items())
        row["v"] = sum(2**n for n, is_equal in enumerate(found) if is_equal)
    assert not differences(read_with_java(warehouse.path, "d.t"), rows)


def test_one_avro_file_among_others(spark, warehouse):
    options = {"deletion-vectors.enabled": "true"}
    table = JavaTable.of_types(warehouse.path, "d.t", {"id": "BIGINT", "v": "INT"}, (), options)
    expected = []
    for number, kind in enumerate(("parquet", "avro", "orc")):
        table = table.alter(("option", ["file.format"], kind))
        rows = [{"id": 10 * number + i, "v": 0} for i in range(10)]
        table.append_rows(rows)
        expected += rows

    assert update(spark, warehouse, {"v": "id"}, "id % 10 = 3").error is None

    for row in expected:
        row["v"] = row["id"] if row["id"] % 10 == 3 else 0
    assert not differences(warehouse.both_readers("d.t"), expected)
