"""UPDATE with subqueries as values: of sources, of the table itself, and what is refused."""

from __future__ import annotations

from spark_jobs.errors import ErrorCode
from tests.conformance.behaviour import fails, update_set

_SOURCE = "VALUES (101, 7), (102, 9) AS s(id, n)"

BEHAVIOURS = [
    update_set(
        "update: a subquery in a value",
        {"n": "(SELECT max(n) FROM s)", "v": "concat(v, (SELECT CAST(min(id) AS STRING) FROM s))"},
        "id IN (101, 220)",
        _SOURCE,
        updated={101: {"n": 9, "v": "v101101"}, 220: {"n": 9, "v": "v220101"}},
        source_rows=2,
        smoke=True,
    ),
    update_set(
        "update: values and WHERE read one source",
        {"n": "(SELECT sum(n) FROM s WHERE id > 101)"},
        "id IN (SELECT id FROM s)",
        _SOURCE,
        updated={101: {"n": 9}, 102: {"n": 9}},
        source_rows=2,
    ),
    update_set(
        "update: a value of all rows of the table itself, as they were",
        {"n": "n + (SELECT count(*) FROM target WHERE n = 1)", "k": "(SELECT max(k) FROM target)"},
        "id IN (101, 301)",
        updated={101: {"n": 11, "k": 404}, 301: {"n": 11, "k": 404}},
        source_rows=0,
    ),
    update_set(
        "update: a subquery without rows is NULL",
        {"v": "(SELECT 'x' FROM s WHERE id < 0)"},
        "id = 101",
        _SOURCE,
        updated={101: {"v": None}},
    ),
    update_set(
        "update: a subquery within an expression and without a table",
        {"n": "CASE WHEN (SELECT true) THEN (SELECT 3) + n ELSE 0 END"},
        "id = 101",
        updated={101: {"n": 4}},
    ),
    update_set(
        "update: a row moves to the partition that a subquery names",
        {"p": "(SELECT max(p) FROM target)"},
        "id = 101",
        updated={101: {"p": "c"}},
    ),
    update_set(
        "update: a subquery of several rows as a value",
        {"n": "(SELECT n FROM s)"},
        "id = 101",
        _SOURCE,
        fails=fails(ErrorCode.EXPRESSION_FAILED, "SCALAR_SUBQUERY_TOO_MANY_ROWS"),
    ),
    update_set(
        "update: a subquery about the row as a value",
        {"n": "(SELECT max(n) FROM s WHERE s.id = t.id)"},
        None,
        _SOURCE,
        fails=fails(ErrorCode.EXPRESSION_NOT_ALLOWED, "value of n in UPDATE", "about the row"),
    ),
    update_set(
        "update: EXISTS in a value",
        {"v": "CAST(EXISTS (SELECT 1 FROM s) AS STRING)"},
        None,
        _SOURCE,
        fails=fails(ErrorCode.EXPRESSION_NOT_ALLOWED, "value of v in UPDATE", "EXISTS"),
    ),
    update_set(
        "update: a subquery of a table that is no source",
        {"n": "(SELECT max(id) FROM nothing)"},
        None,
        fails=fails(ErrorCode.TABLE_NOT_FOUND, "value of n in UPDATE", "nothing"),
    ),
    update_set(
        "update: a subquery with a value of another type",
        {"n": "(SELECT true)"},
        None,
        fails=fails(ErrorCode.TYPE_MISMATCH, "n", "boolean", "int"),
    ),
]
