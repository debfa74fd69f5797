"""Several source rows for one target row: what is an error, and what is not."""

from __future__ import annotations

from spark_jobs.errors import ErrorCode
from tests.conformance.behaviour import (
    Behaviour,
    Failure,
    by_source,
    delete,
    fails,
    insert,
    matched,
    not_matched,
    update,
)
from tests.conformance.behaviours.clauses import new


def ambiguous(*says: str) -> Failure:
    return fails(ErrorCode.MERGE_TARGET_ROW_MULTIPLE_MATCHES, *says)


_TWICE = "VALUES (101, 'x'), (222, 'one'), (101, 'y') AS s(id, v)"

BEHAVIOURS = [
    Behaviour(
        "two source rows that update one target row are an error with keys and clauses",
        _TWICE,
        (matched(update(v="s.v")),),
        fails=ambiguous("clause 1", "id=101"),
        smoke=True,
    ),
    Behaviour(
        "one row hit by two clauses is an error that names both",
        _TWICE,
        (
            not_matched(insert(id="s.id", req="'r'")),
            matched(delete(), "s.v = 'x'"),
            matched(update(v="s.v")),
        ),
        fails=ambiguous("clause 2, 3", "id=101"),
    ),
    Behaviour(
        "a second match that a condition filters out is no error",
        _TWICE,
        (matched(update(v="s.v"), "s.v <> 'y'"),),
        updated={101: {"v": "x"}, 222: {"v": "one"}},
        source_rows=3,
        matched=3,
    ),
    Behaviour(
        "a row matched twice without effect is carried once",
        "VALUES (101, 'x'), (101, 'y'), (102, 'z') AS s(id, v)",
        (matched(update(v="s.v"), "s.v = 'z'"),),
        updated={102: {"v": "z"}},
        source_rows=3,
        matched=3,
    ),
    Behaviour(
        "strict: a second match is an error even when no clause takes it",
        _TWICE,
        (matched(update(v="s.v"), "s.v = 'x'"),),
        cardinality="strict",
        fails=ambiguous("id=101"),
    ),
    Behaviour(
        "strict: two matches that no clause takes are an error too",
        _TWICE,
        (matched(update(v="s.v"), "s.v = 'one'"),),
        cardinality="strict",
        fails=ambiguous("ON condition", "id=101"),
    ),
    Behaviour(
        "strict: unique matches pass",
        "VALUES (101, 'x'), (222, 'y'), (1, 'z') AS s(id, v)",
        (
            matched(update(v="s.v"), "s.v = 'x'"),
            not_matched(insert(id="s.id", req="'r'")),
        ),
        cardinality="strict",
        updated={101: {"v": "x"}},
        inserted=(new(1),),
        source_rows=3,
        matched=2,
    ),
    Behaviour(
        "strict: without a MATCHED clause repeated matches mean nothing",
        _TWICE,
        (
            not_matched(insert(id="s.id", req="'r'")),
            by_source(delete(), "t.id IN (100, 102)"),
        ),
        cardinality="strict",
        deleted=frozenset({100, 102}),
        source_rows=3,
    ),
    Behaviour(
        "a sole unconditional DELETE takes repeated matches, and counts the row once",
        _TWICE,
        (matched(delete()),),
        deleted=frozenset({101, 222}),
        source_rows=3,
        matched=3,
    ),
    Behaviour(
        "strict: a sole unconditional DELETE takes repeated matches",
        _TWICE,
        (matched(delete()), not_matched(insert(id="s.id", req="'r'"))),
        cardinality="strict",
        deleted=frozenset({101, 222}),
        source_rows=3,
        matched=3,
    ),
    Behaviour(
        "a conditional DELETE does not take repeated matches",
        _TWICE,
        (matched(delete(), "t.n >= 0"),),
        fails=ambiguous("clause 1", "id=101"),
    ),
    Behaviour(
        "two DELETE clauses do not take repeated matches",
        _TWICE,
        (matched(delete(), "s.v = 'x'"), matched(delete())),
        fails=ambiguous("clause 1, 2", "id=101"),
    ),
    Behaviour(
        "repeated moves to another partition are an error",
        "VALUES (101, 'b'), (101, 'c') AS s(id, p)",
        (matched(update(p="s.p")),),
        fails=ambiguous("clause 1", "id=101"),
    ),
    Behaviour(
        "repeated source keys leave matched rows to be carried once beside BY SOURCE",
        "VALUES (101), (101), (101), (222), (222) AS s(id)",
        (by_source(update(v="'x'"), "t.id IN (100, 220)"),),
        updated={100: {"v": "x"}, 220: {"v": "x"}},
        source_rows=5,
    ),
    Behaviour(
        "repeated source keys beside MATCHED and BY SOURCE without effect on them",
        "VALUES (101, 'x'), (101, 'y'), (102, 'u') AS s(id, v)",
        (
            matched(update(v="s.v"), "s.v = 'u'"),
            not_matched(insert(id="s.id", req="'r'")),
            by_source(delete(), "t.id = 103"),
        ),
        updated={102: {"v": "u"}},
        deleted=frozenset({103}),
        source_rows=3,
        matched=3,
    ),
    Behaviour(
        "repeated new keys are all inserted",
        "VALUES (1, 'x'), (1, 'y'), (NULL, 'z'), (NULL, 'z') AS s(id, v)",
        (not_matched(insert(id="coalesce(s.id, 2)", v="s.v", req="'r'", p="'a'")),),
        inserted=(
            new(1, v="x", p="a"),
            new(1, v="y", p="a"),
            new(2, v="z", p="a"),
            new(2, v="z", p="a"),
        ),
        source_rows=4,
    ),
]
