"""What ON can be: NULL keys, null-safe equality, other conditions, and keys of files far away."""

from __future__ import annotations

from tests.conformance.behaviour import (
    Behaviour,
    by_source,
    delete,
    insert,
    matched,
    not_matched,
    update,
)
from tests.conformance.behaviours.clauses import new
from tests.conformance.tables import ORDERS

_NULL_KEYS = [row["id"] for row in ORDERS.rows if row["k"] is None]

BEHAVIOURS = [
    Behaviour(
        "NULL keys never match",
        "VALUES (CAST(NULL AS INT), 1), (101, 2), (107, 3) AS s(k, id)",
        (
            matched(update(v="'x'")),
            not_matched(insert(id="s.id", k="s.k", req="'r'")),
            by_source(delete(), "t.k IS NULL AND t.p = 'a'"),
        ),
        on="t.k = s.k",
        updated={101: {"v": "x"}},
        deleted=frozenset({107, 207, 307}),
        inserted=(new(1), new(3, k=107)),
        source_rows=3,
        matched=1,
        smoke=True,
    ),
    Behaviour(
        "NULL keys match under <=>",
        "VALUES (CAST(NULL AS INT), 'null'), (101, 'x') AS s(k, v)",
        (matched(update(v="s.v")),),
        on="t.k <=> s.k",
        updated={101: {"v": "x"}, **{id_: {"v": "null"} for id_ in _NULL_KEYS}},
        source_rows=2,
        matched=1 + len(_NULL_KEYS),
    ),
    Behaviour(
        "ON without any equality",
        "VALUES (105, 123, 'x'), (340, 341, 'y') AS s(low, high, v)",
        (matched(update(v="s.v")),),
        on="t.id BETWEEN s.low AND s.high",
        updated={
            **{id_: {"v": "x"} for id_ in (*range(105, 110), *range(120, 124))},
            **{id_: {"v": "y"} for id_ in (340, 341)},
        },
        source_rows=2,
        matched=11,
    ),
    Behaviour(
        "rows outside the target part of ON are not matched",
        "VALUES (101), (121), (141) AS s(id)",
        (
            matched(delete()),
            not_matched(insert(id="s.id + 1000", req="'r'", p="'a'")),
        ),
        on="t.id = s.id AND t.p IN ('a', 'c')",
        deleted=frozenset({101, 141}),
        inserted=(new(1121, p="a"),),
        source_rows=3,
        matched=2,
    ),
    Behaviour(
        "rows outside the source part of ON are not matched",
        "VALUES (101, true), (121, false), (141, NULL) AS s(id, live)",
        (
            matched(update(v="'x'")),
            not_matched(insert(id="s.id + 1000", req="'r'", p="'a'")),
        ),
        on="s.live AND t.id = s.id",
        updated={101: {"v": "x"}},
        inserted=(new(1121, p="a"), new(1141, p="a")),
        source_rows=3,
        matched=1,
    ),
    Behaviour(
        "an ON that is false matches nothing",
        "VALUES (101) AS s(id)",
        (
            matched(delete()),
            not_matched(insert(id="s.id + 1000", req="'r'")),
            by_source(update(n="0"), "t.id = 101"),
        ),
        on="1 = 0",
        updated={101: {"n": 0}},
        inserted=(new(1101),),
        source_rows=1,
        matched=0,
    ),
    Behaviour(
        "a key of another type matches as Spark compares it",
        "VALUES ('101', 'x'), ('0143', 'y') AS s(id, v)",
        (matched(update(v="s.v")),),
        updated={101: {"v": "x"}, 143: {"v": "y"}},
        source_rows=2,
        matched=2,
    ),
    Behaviour(
        "a key that is computed on both sides",
        "VALUES (110, 'x') AS s(id, v)",
        (matched(update(v="s.v")),),
        on="t.id + 1 = s.id - 8 AND t.req = lower('R')",
        updated={101: {"v": "x"}},
        source_rows=1,
        matched=1,
    ),
    Behaviour(
        "keys of one partition leave the other partitions alone",
        "VALUES ('a', 101), ('c', 241), (NULL, 400), ('none', 1) AS s(p, id)",
        (matched(update(n="0")), not_matched(insert(id="s.id + 1000", req="'r'", p="s.p"))),
        on="t.p = s.p AND t.id = s.id",
        updated={101: {"n": 0}, 241: {"n": 0}},
        inserted=(new(1400), new(1001, p="none")),
        source_rows=4,
        matched=2,
    ),
    Behaviour(
        "the NULL partition matches under <=>",
        "VALUES (CAST(NULL AS STRING), 400), ('a', 101) AS s(p, id)",
        (matched(delete()),),
        on="t.p <=> s.p AND t.id = s.id",
        deleted=frozenset({101, 400}),
        source_rows=2,
        matched=2,
    ),
    Behaviour(
        "a BY SOURCE clause reaches rows that ON's target part leaves out",
        "VALUES (101) AS s(id)",
        (matched(update(n="0")), by_source(delete(), "t.p = 'c' AND t.id < 142")),
        on="t.id = s.id AND t.p = 'a'",
        updated={101: {"n": 0}},
        deleted=frozenset({140, 141}),
        source_rows=1,
        matched=1,
    ),
]
