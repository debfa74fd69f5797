"""Columns of Avro files have the types that each file's own schema says."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.errors import CatalogError, ErrorCode, NotSupportedError
from spark_jobs.landing.avro_reader import avro_types
from spark_jobs.landing.records import Column
from tests.landing.avro_writing import (
    DECIMAL,
    FIXED,
    INNER,
    NESTED,
    logical,
    read_avro,
    record,
    write,
)


def test_names_match_in_any_case(tmp_path: Path) -> None:
    path = write(tmp_path, record(ID="int", n="int"), [{"ID": 1, "n": 2}])
    found = read_avro(path, "N INT, id INT")

    assert found.rows == [(2, 1)]
    assert found.seen == {"ID", "n"}


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ("id INT, x INT", "column x: the file has no such column"),
        ("N INT", "column N: the file has n and N"),
        ("id DATE", "column id: it is int in the file, not DATE"),
        ("id STRING", "column id: it is int in the file, not STRING"),
        ("id BOOLEAN", "column id: it is int in the file, not BOOLEAN"),
        ("id TIMESTAMP", "column id: it is int in the file, not TIMESTAMP"),
        ("at TIMESTAMP_NTZ", "column at: it is timestamp-millis in the file, not TIMESTAMP_NTZ"),
        ("at BIGINT", "column at: it is timestamp-millis in the file, not BIGINT"),
        ("d DOUBLE", "column d: it is decimal(10,2) in the file, not DOUBLE"),
        ("f DECIMAL(6,2)", "column f: it is double in the file, not DECIMAL(6,2)"),
        ("f INT", "column f: it is double in the file, not INT"),
    ],
)
def test_columns_that_a_file_has_not(tmp_path: Path, wanted: str, reason: str) -> None:
    at = logical("long", "timestamp-millis")
    path = write(tmp_path, record(id="int", n="int", N="int", at=at, d=DECIMAL, f="double"), [])

    with pytest.raises(CatalogError) as error:
        read_avro(path, wanted)

    assert error.value.code is ErrorCode.SOURCE_UNREADABLE
    assert error.value.message == f"landed.avro: {reason}"


def test_nested_values(tmp_path: Path) -> None:
    kind = pa.struct(
        [
            ("map", pa.map_(pa.string(), pa.string())),
            ("day", pa.date32()),
            ("list", pa.list_(pa.string())),
        ]
    )
    wanted = (Column("v", kind, "STRUCT"), Column("again", kind, "STRUCT"))
    path = write(tmp_path, NESTED, [{"v": INNER, "again": None}, {"v": INNER, "again": INNER}])

    found = read_avro(path, wanted)

    inner = {
        "map": [("x", "SPADES"), ("y", None)],
        "day": dt.date(2024, 2, 29),
        "list": ["HEARTS"],
    }
    assert found.rows == [(inner, None), (inner, inner)]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (pa.struct([("x", pa.int32())]), "column v.x: the file has no such column"),
        (pa.struct([("day", pa.int32())]), "column v.day: it is date in the file, not INT"),
        (
            pa.struct([("list", pa.list_(pa.binary()))]),
            "column v.list.element: it is enum in the file, not BINARY",
        ),
        (pa.list_(pa.int32()), "column v: it is record in the file, not ARRAY<INT>"),
        (
            pa.struct([("map", pa.list_(pa.string()))]),
            "column v.map: it is map in the file, not ARRAY<STRING>",
        ),
    ],
)
def test_nested_columns_that_a_file_has_not(tmp_path: Path, kind: pa.DataType, reason: str) -> None:
    path = write(tmp_path, NESTED, [])

    with pytest.raises(CatalogError) as error:
        read_avro(path, (Column("v", kind, "X"),))

    assert error.value.message == f"landed.avro: {reason}"


def test_a_bad_part_of_a_value(tmp_path: Path) -> None:
    path = write(tmp_path, record(v={"type": "array", "items": "long"}), [{"v": [1, 2**31]}])
    found = read_avro(path, (Column("v", pa.list_(pa.int32()), "ARRAY<INT>"),))

    assert found.bad[0].problem.column == "v.element"
    assert found.bad[0].problem.value == "2147483648"


@pytest.mark.parametrize(
    "kind",
    [
        logical("int", "time-millis"),
        logical("long", "time-micros"),
        {**logical("fixed", "duration"), "name": "F", "size": 12},
        ["int", "string"],
        ["null", "int", "string"],
    ],
)
def test_types_that_spark_has_nothing_for(tmp_path: Path, kind: Any) -> None:
    path = write(tmp_path, record(id="int", v=kind), [])

    assert read_avro(path, "id INT").rows == []
    with path.open("rb") as file, pytest.raises(NotSupportedError, match="column v"):
        avro_types(file, "landed.avro")
    with pytest.raises((NotSupportedError, CatalogError), match="column v"):
        read_avro(path, "v INT")


def test_types_for_sources_without_a_schema(tmp_path: Path) -> None:
    schema = record(
        a=["null", "int"],
        b=logical("long", "local-timestamp-millis"),
        c=DECIMAL,
        d=NESTED["fields"][0]["type"] | {"fields": NESTED["fields"][0]["type"]["fields"][:3]},
        e=["null", "a.b.Inner"],
        f=FIXED,
        g=["float", "double"],
    )
    path = write(tmp_path, schema, [])

    with path.open("rb") as file:
        found = avro_types(file, "landed.avro")

    inner = "STRUCT<`Day`: DATE, `list`: ARRAY<STRING>, `map`: MAP<STRING, STRING>>"
    assert found == {
        "a": "INT",
        "b": "TIMESTAMP_NTZ",
        "c": "DECIMAL(10,2)",
        "d": inner,
        "e": inner,
        "f": "BINARY",
        "g": "DOUBLE",
    }


def test_a_record_that_contains_itself(tmp_path: Path) -> None:
    node = {
        "type": "record",
        "name": "Node",
        "fields": [{"name": "id", "type": "int"}, {"name": "next", "type": ["null", "Node"]}],
    }
    rows = [{"v": {"id": 1, "next": {"id": 2, "next": None}}}]
    path = write(tmp_path, record(v=node), rows)

    with path.open("rb") as file, pytest.raises(NotSupportedError, match="contains itself"):
        avro_types(file, "landed.avro")
    kind = pa.struct([("next", pa.struct([("id", pa.int32())]))])
    assert read_avro(path, (Column("v", kind, "X"),)).values == [{"next": {"id": 2}}]
