"""Structs, arrays and maps."""

from __future__ import annotations

from spark_jobs.errors import ErrorCode
from tests.conformance.behaviour import (
    Behaviour,
    by_source,
    delete,
    fails,
    insert,
    matched,
    not_matched,
    update,
)
from tests.conformance.tables import NESTED

_VALUE = "named_struct('ZIP', '7', 'city', s.v)"

BEHAVIOURS = [
    Behaviour(
        "nested values are carried over as they are",
        "VALUES (10, 20), (25, 26), (33, 34) AS s(id, id2)",
        (matched(delete()),),
        table=NESTED,
        deleted=frozenset({10, 25, 33}),
        source_rows=3,
        matched=3,
        smoke=True,
    ),
    Behaviour(
        "nested values of rows that move are kept",
        "(SELECT id FROM range(10, 17)) AS s",
        (matched(update(p="'moved'")),),
        table=NESTED,
        updated={id_: {"p": "moved"} for id_ in range(10, 17)},
        source_rows=7,
        matched=7,
    ),
    Behaviour(
        "nested values are assigned whole, struct fields by name",
        "VALUES (10, 'x'), (1, 'y') AS s(id, v)",
        (
            matched(
                update(
                    info=_VALUE,
                    tags="array(s.v, NULL, '1')",
                    attrs="map(7, 1L, 8, NULL)",
                    deep="array(named_struct('v', named_struct('W', 9), 'k', 5L))",
                )
            ),
            not_matched(insert(id="s.id", info=_VALUE, tags="array()", p="'x'")),
        ),
        table=NESTED,
        updated={
            10: {
                "info": {"city": "x", "zip": 7},
                "tags": ["x", None, "1"],
                "attrs": [("7", 1), ("8", None)],
                "deep": [{"k": 5, "v": {"w": "9"}}],
            }
        },
        inserted=(
            {
                "id": 1,
                "info": {"city": "y", "zip": 7},
                "tags": [],
                "attrs": None,
                "deep": None,
                "p": "x",
            },
        ),
        source_rows=2,
        matched=1,
    ),
    Behaviour(
        "a struct that is NULL stays NULL, not a struct of NULLs",
        "VALUES (11, CAST(NULL AS STRUCT<city: STRING, zip: BIGINT>)) AS s(id, info)",
        (matched(update(info="s.info")),),
        table=NESTED,
        updated={11: {"info": None}},
        source_rows=1,
        matched=1,
    ),
    Behaviour(
        "nested fields in conditions, by bare name where one side is seen",
        "VALUES (1, named_struct('city', 'c12')) AS s(id, info)",
        (by_source(delete(), "info.city = 'c12' OR deep[1].k = 13"),),
        table=NESTED,
        deleted=frozenset({12, 13}),
        source_rows=1,
    ),
    Behaviour(
        "a struct without a field of the column",
        "VALUES (10) AS s(id)",
        (matched(update(info="named_struct('city', 'x')")),),
        table=NESTED,
        fails=fails(ErrorCode.COLUMN_NOT_FOUND, "column info", "field zip"),
    ),
    Behaviour(
        "a struct with a field that the column does not have",
        "VALUES (10) AS s(id)",
        (matched(update(info="named_struct('city', 'x', 'zip', 1, 'more', 2)")),),
        table=NESTED,
        fails=fails(ErrorCode.COLUMN_NOT_FOUND, "column info", "field more"),
    ),
    Behaviour(
        "NULL in a nested NOT NULL field",
        "VALUES (10) AS s(id)",
        (
            matched(
                update(deep="array(named_struct('k', CAST(NULL AS INT), 'v', NULL))"),
            ),
        ),
        table=NESTED,
        fails=fails(ErrorCode.NOT_NULL_VIOLATION, "deep.element.k"),
    ),
    Behaviour(
        "an element that cannot be stored",
        "VALUES (10, '1x') AS s(id, v)",
        (matched(update(attrs="map('a', s.v)")),),
        table=NESTED,
        fails=fails(ErrorCode.VALUE_NOT_STORABLE, "attrs", "1x"),
    ),
]
