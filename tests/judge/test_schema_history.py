"""Tables that Java altered: files of each schema are read and rewritten as Java reads them."""

from __future__ import annotations

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


def struct(*fields):
    named = [{"id": i, "name": n, "type": kind} for i, (n, kind) in enumerate(fields, 100)]
    return {"type": "ROW", "fields": named}


KINDS = {
    "id": "BIGINT",
    "part": "STRING",
    "small": "INT",
    "text": "STRING",
    "again": "INT",
    "real": "FLOAT",
    "price": "DECIMAL(9, 2)",
    "count": "TINYINT",
    "fixed": "CHAR(3)",
    "code": "VARCHAR(3)",
    "raw": "BINARY(2)",
    "at": "TIMESTAMP(3)",
    "r": struct(("x", "INT"), ("y", "STRING")),
    "l": {"type": "ARRAY", "element": struct(("p", "INT"))},
    "m": {"type": "MAP", "key": "STRING", "value": struct(("q", "INT"))},
}
ALTERS = (
    (
        ("rename", ["small"], "wide"),
        ("type", ["wide"], "BIGINT"),
        ("drop", ["again"]),
        ("add", ["again"], "INT"),
        ("type", ["r", "x"], "BIGINT"),
        ("add", ["r", "n"], "INT"),
    ),
    (
        ("type", ["real"], "DOUBLE"),
        ("type", ["price"], "DECIMAL(12, 3)"),
        ("type", ["count"], "DECIMAL(5, 1)"),
        ("type", ["fixed"], "CHAR(5)"),
        ("type", ["code"], "VARCHAR(9)"),
        ("type", ["raw"], "BINARY(4)"),
        ("type", ["at"], "TIMESTAMP(6)"),
    ),
    (
        ("drop", ["r", "x"]),
        ("add", ["r", "x"], "INT"),
        ("rename", ["r", "y"], "z"),
        ("add", ["l", "element", "r"], "STRING"),
        ("add", ["m", "value", "r"], "INT"),
        ("type", ["m", "value", "q"], "BIGINT"),
        ("first", ["price"]),
    ),
)
VECTORS = {"deletion-vectors.enabled": "true"}
BUCKETS = {"bucket": "2", "bucket-key": "id"}
ORC = {"file.format": "orc"}
AVRO = {"file.format": "avro"}
TABLES = {
    "copy-on-write": ([], {}),
    "partitioned": (["part"], {}),
    "deletion vectors": ([], VECTORS),
    "ORC": ([], ORC),
    "ORC in partitions with deletion vectors": (["part"], {**ORC, **VECTORS}),
    "Avro in partitions with deletion vectors": (["part"], {**AVRO, **VECTORS}),
    "buckets with deletion vectors": (["part"], {**BUCKETS, **VECTORS}),
}


def value(kind, number):
    """A value of the type; NULL now and then."""
    if number % 5 == 4:
        return None
    if isinstance(kind, dict):
        if kind["type"] == "ROW":
            return {f["name"]: value(f["type"], number + f["id"]) for f in kind["fields"]}
        if kind["type"] == "ARRAY":
            return [value(kind["element"], number + i) for i in range(number % 4)]
        return {f"k{i}": value(kind["value"], number + i) for i in range(number % 3)}
    return {
        "BIGINT": number,
        "INT": -number,
        "STRING": f"é{number}",
        "FLOAT": Number(pa.scalar(number / 3, pa.float32()).as_py()),
        "DOUBLE": Number(number / 3),
        "DECIMAL(9, 2)": Decimal(number) / 4,
        "DECIMAL(12, 3)": (Decimal(number) / 8).quantize(Decimal("0.001")),
        "TINYINT": number - 20,
        "DECIMAL(5, 1)": Decimal(number) / 2,
        "CHAR(3)": "ab ",
        "CHAR(5)": "abc  ",
        "VARCHAR(3)": "abc",
        "VARCHAR(9)": "abcdefghi",
        "BINARY(2)": b"xy",
        "BINARY(4)": b"wxyz",
        "TIMESTAMP(3)": number * 1_000_000,
        "TIMESTAMP(6)": number * 1_000,
    }[kind]


def rows_of(kinds, ids):
    fixed = {"id": lambda i: i, "part": lambda i: ("a", "b", None)[i % 3]}
    return [
        {name: fixed[name](i) if name in fixed else value(kind, i) for name, kind in kinds.items()}
        for i in ids
    ]


def old_table(warehouse, keys, options):
    """Files of four schemas, with deletion vectors where the table has them."""
    table = JavaTable.of_types(warehouse.path, "d.t", KINDS, keys, options)
    for number, changes in enumerate(((), *ALTERS)):
        for change in changes:
            table = table.alter(change)
        table.append_rows(rows_of(table.kinds, range(10 * number, 10 * number + 10)))
        if options.get("deletion-vectors.enabled") == "true":
            table.delete("id", [10 * number + 1])
    return table


def rows_by_java(warehouse):
    """The rows with CHAR padded, from which Java takes the blanks where it reads ORC."""
    rows = read_with_java(warehouse.path, "d.t")
    for row in rows:
        if row["fixed"] is not None:
            row["fixed"] = row["fixed"].ljust(5)
    return rows


def check(warehouse, expected):
    # Not pypaimon: it does not pad what is in older files.
    assert not differences(rows_by_java(warehouse), expected)


@pytest.mark.by_turns(2)
@pytest.mark.parametrize("name", TABLES)
def test_statements_on_an_altered_table(spark, warehouse, name):
    table = old_table(warehouse, *TABLES[name])
    rows = {row["id"]: row for row in rows_by_java(warehouse)}
    assert rows[0]["again"] is None
    assert rows[0]["fixed"] == "ab   "

    source = pa.table({"id": [0, 2, 13, 24, 39, 100], "v": [1, 2, 3, 4, 5, 6]})
    cases = [
        MergeCase("matched", DeleteAction(), "s.v = 3"),
        MergeCase("matched", UpdateAction((Assignment("wide", "s.v"), Assignment("text", "'u'")))),
        MergeCase("not_matched", InsertAction(values=("s.id", "s.v"), columns=("id", "wide"))),
    ]
    assert merge(spark, warehouse, source, cases).error is None
    for id_, number in ((0, 1), (2, 2), (24, 4), (39, 5)):
        rows[id_] |= {"wide": number, "text": "u"}
    del rows[13]
    rows[100] = dict.fromkeys(rows[0]) | {"id": 100, "wide": 6}
    check(warehouse, rows.values())

    assert update(spark, warehouse, {"again": "7", "r": "NULL"}, "id IN (5, 15, 25)").error is None
    for id_ in (5, 15, 25):
        rows[id_] |= {"again": 7, "r": None}
    check(warehouse, rows.values())

    # Only if the values of the older files are those of today's types.
    where = "wide > 15 OR fixed = 'ab   ' AND at > TIMESTAMP_NTZ'1970-01-01 00:00:00.007'"
    assert delete(spark, warehouse, where).error is None
    gone = [
        id_
        for id_, row in rows.items()
        if (row["wide"] or 0) > 15 or (row["fixed"] == "ab   " and (row["at"] or 0) > 7_000_000)
    ]
    assert gone
    for id_ in gone:
        del rows[id_]
    check(warehouse, rows.values())

    table.append_rows(rows_of(table.kinds, range(40, 45)))
    rows |= {row["id"]: row for row in rows_of(table.kinds, range(40, 45))}
    check(warehouse, rows.values())
