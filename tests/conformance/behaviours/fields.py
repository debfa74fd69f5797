"""Assignment of struct fields at any depth, and structs by * (rule 7)."""

from __future__ import annotations

from typing import Any

from spark_jobs.errors import ErrorCode
from tests.conformance.behaviour import (
    Behaviour,
    Failure,
    by_source,
    fails,
    insert,
    insert_all,
    matched,
    not_matched,
    update,
    update_all,
    update_set,
)
from tests.conformance.tables import DEEP, Row, deep


def changed(id_: int, **columns: Any) -> dict[int, Row]:
    """The columns of one row that change."""
    return {id_: columns}


def refused(name: str, assignments: dict[str, str], failure: Failure, **needs: bool) -> Behaviour:
    """An UPDATE of one row that fails."""
    return update_set(name, assignments, "id = 11", table=DEEP, fails=failure, **needs)


_STRUCT = {"a": {"x": 11, "y": "y"}, "c d": "c", "list": [1]}

BEHAVIOURS = [
    update_set(
        "fields: at any depth, in any case, with and without the alias",
        {"S.A.X": "s.a.x + t.s.a.x", "t.s.`c d`": "'new' -- c", "s.LIST": "array(2L)"},
        "id = 11",
        table=DEEP,
        updated=changed(11, s={"a": {"x": 22, "y": "y"}, "c d": "new", "list": [2]}),
        smoke=True,
    ),
    update_set(
        "fields: of a struct that is NULL, whose other fields become NULL",
        {"s.a.x": "1", "t.t.b": "'B'"},
        "id IN (10, 12)",
        table=DEEP,
        updated={
            10: {
                "s": {"a": {"x": 1, "y": None}, "c d": None, "list": None},
                "t": {"b": "B", "id": None},
            },
            12: {
                "s": {"a": {"x": 1, "y": None}, "c d": "c", "list": [1]},
                "t": {"b": "B", "id": 0},
            },
        },
    ),
    update_set(
        "fields: NULL into a struct within a struct",
        {"s.a": "NULL", "s.`c d`": "NULL"},
        "id = 11",
        table=DEEP,
        updated=changed(11, s={"a": None, "c d": None, "list": [1]}),
    ),
    update_set(
        "fields: a struct by the names of its fields",
        {"s.a": "named_struct('Y', id, 'x', '7')"},
        "id = 11",
        table=DEEP,
        updated=changed(11, s={**_STRUCT, "a": {"x": 7, "y": "11"}}),
    ),
    update_set(
        "fields: the alias comes before a column of its name",
        {"t.b": "'column'", "t.t.b": "'field'"},
        "t.id = 11 AND t.t.id = 0",
        table=DEEP,
        updated=changed(11, b="column", t={"b": "field", "id": 0}),
    ),
    update_set(
        "fields: a column of the alias's name, where the field is no column",
        {"t.t": "named_struct('id', 5, 'b', t.t.b)"},
        "id = 11",
        table=DEEP,
        updated=changed(11, t={"b": "tb", "id": 5}),
    ),
    update_set(
        "fields: of rows that move to another partition",
        {"s.a.y": "'n'", "p": "'y'"},
        "id = 11",
        table=DEEP,
        updated=changed(11, s={**_STRUCT, "a": {"x": 11, "y": "n"}}, p="y"),
    ),
    Behaviour(
        "fields: by several clauses of a MERGE",
        "VALUES (11, 1), (13, 2) AS s(id, n)",
        (
            matched(update({"s.a.x": "s.n", "must.m": "s.n"}), "t.id = 11"),
            matched(update({"t.s.`c d`": "s.n"})),
            by_source(update({"must.m": "id"}), "id = 21"),
        ),
        table=DEEP,
        updated={
            11: {"s": {**_STRUCT, "a": {"x": 1, "y": "y"}}, "must": {"n": 1, "m": 1}},
            13: {"s": {**deep(13, "x")["s"], "c d": "2"}},
            21: {"must": {"n": 1, "m": 21}},
        },
        source_rows=2,
        matched=2,
    ),
    Behaviour(
        "fields: structs by *, reordered, in lists too, with columns that are ignored",
        "(SELECT id, named_struct('id', '3', 'B', 4) AS t, 'new' AS b, 1 AS extra,"
        " named_struct('list', array(5L), 'c d', 6, 'a', named_struct('y', '7', 'x', 8)) AS s,"
        " array(named_struct('X', '9')) AS items, named_struct('m', 1, 'n', 2) AS must, 'x' AS p"
        " FROM VALUES (11), (1) AS r(id)) AS s",
        (matched(update_all()), not_matched(insert_all())),
        on="t.id = s.id",
        table=DEEP,
        updated={
            11: {
                "t": {"b": "4", "id": 3},
                "b": "new",
                "s": {"a": {"x": 8, "y": "7"}, "c d": "6", "list": [5]},
                "items": [{"x": 9}],
                "must": {"n": 2, "m": 1},
                "p": "x",
            }
        },
        inserted=(
            {
                "id": 1,
                "t": {"b": "4", "id": 3},
                "b": "new",
                "s": {"a": {"x": 8, "y": "7"}, "c d": "6", "list": [5]},
                "items": [{"x": 9}],
                "must": {"n": 2, "m": 1},
                "p": "x",
            },
        ),
        source_rows=2,
        matched=1,
    ),
    Behaviour(
        "fields: INSERT with the alias before its columns",
        "VALUES (1) AS s(id)",
        (
            not_matched(
                insert(
                    {
                        "t.id": "s.id",
                        "t.b": "'b'",
                        "t.t": "NULL",
                        "must": "named_struct('n', 1, 'm', 2)",
                    }
                )
            ),
        ),
        table=DEEP,
        inserted=({**dict.fromkeys(deep(1, "x")), "id": 1, "b": "b", "must": {"n": 1, "m": 2}},),
        source_rows=1,
    ),
    refused(
        "fields: one field twice",
        {"s.a.x": "1", "t.S.A.X": "2"},
        fails(ErrorCode.DUPLICATE_ASSIGNMENT, "UPDATE", "s.a.x is assigned twice"),
    ),
    refused(
        "fields: a struct and its field",
        {"s.a.x": "1", "s": "NULL"},
        fails(ErrorCode.DUPLICATE_ASSIGNMENT, "UPDATE", "both s and its field s.a.x"),
    ),
    refused(
        "fields: a struct, and then its field",
        {"s.a": "NULL", "s.a.y": "'y'"},
        fails(ErrorCode.DUPLICATE_ASSIGNMENT, "UPDATE", "both s.a and its field s.a.y"),
    ),
    refused(
        "fields: one that is not there",
        {"s.a.z": "1"},
        fails(ErrorCode.COLUMN_NOT_FOUND, "UPDATE", "s.a has no field z"),
    ),
    refused(
        "fields: of a list",
        {"items.x": "1"},
        fails(ErrorCode.COLUMN_NOT_FOUND, "items is array<struct<x:int>>", "x"),
    ),
    refused(
        "fields: of what is no struct",
        {"b.x": "1"},
        fails(ErrorCode.COLUMN_NOT_FOUND, "b is string", "x"),
    ),
    refused(
        "fields: a struct without a field",
        {"s.a": "named_struct('x', 1)"},
        fails(ErrorCode.COLUMN_NOT_FOUND, "UPDATE: column s.a", "no field y"),
    ),
    refused(
        "fields: a value of another type",
        {"s.a.x": "true"},
        fails(ErrorCode.TYPE_MISMATCH, "UPDATE: column s.a.x", "boolean", "int"),
    ),
    refused(
        "fields: a text that is too long",
        {"s.a.y": "'four'"},
        fails(ErrorCode.VALUE_NOT_STORABLE, "UPDATE: column s.a.y varchar(3)", "four"),
        needs_narrow_types=True,
    ),
    refused(
        "fields: NULL into NOT NULL",
        {"must.n": "NULL"},
        fails(ErrorCode.NOT_NULL_VIOLATION, "UPDATE: column must.n is NOT NULL"),
    ),
    refused(
        "fields: DEFAULT",
        {"s.a.x": "DEFAULT"},
        fails(ErrorCode.EXPRESSION_NOT_ALLOWED, "UPDATE: s.a.x", "DEFAULT"),
    ),
    Behaviour(
        "fields: INSERT of a field",
        "VALUES (1) AS s(id)",
        (not_matched(insert({"id": "s.id", "must.n": "1"})),),
        table=DEEP,
        fails=fails(ErrorCode.EXPRESSION_NOT_ALLOWED, "clause 1", "must.n"),
    ),
]
