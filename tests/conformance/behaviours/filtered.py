"""DELETE and UPDATE: every kind of WHERE, subqueries over sources and over the table itself."""

from __future__ import annotations

from collections.abc import Callable

from spark_jobs.contract.statements import Assignment, UpdateSpec
from spark_jobs.errors import ErrorCode
from tests.conformance.behaviour import Behaviour, delete_from, fails, update_set
from tests.conformance.tables import EMPTY, ORDERS, Row

_KEYS = "VALUES (101, 'a'), (102, 'x'), (400, NULL), (1, 'a') AS s(id, p)"
_WITH_NULL = "VALUES (101, 'a'), (NULL, 'x') AS s(id, p)"
_RANDOM = "(SELECT CAST(100 + floor(rand() * 10) AS BIGINT) AS id FROM range(40)) AS s"


def ids(holds: Callable[[Row], object]) -> frozenset[int]:
    """Ids of the rows of ORDERS for which ``holds``."""
    return frozenset(row["id"] for row in ORDERS.rows if holds(row))


BEHAVIOURS = [
    delete_from(
        "delete: a condition on any column",
        "n >= 8 OR v = 'v101' -- done",
        deleted=ids(lambda row: row["n"] == 8 or row["v"] == "v101"),
        source_rows=0,
        smoke=True,
    ),
    delete_from(
        "delete: NULL is not TRUE",
        "NOT (n < 8)",
        deleted=ids(lambda row: row["n"] == 8),
    ),
    delete_from("delete: a condition that is NULL", "NULL"),
    delete_from("delete: a condition that is never TRUE", "1 <> 1"),
    delete_from("delete: every row", None, deleted=ids(lambda row: True)),
    delete_from("delete: TRUE", "TRUE", deleted=ids(lambda row: True)),
    delete_from("delete: from a table without rows", None, table=EMPTY),
    delete_from(
        "delete: the alias and names in any case, in backticks",
        "T.ID = 101 OR t.`V` = 'v102' OR `p` <=> NULL",
        deleted=frozenset({101, 102, 400, 401, 402, 403, 404}),
    ),
    delete_from(
        "delete: a condition of functions, CASE and LIKE",
        "CASE WHEN n IS NULL THEN upper(v) LIKE 'V1_9' ELSE n BETWEEN 3 AND 3 AND p IN ('a') END",
        deleted=ids(
            lambda row: (
                (row["n"] is None and row["id"] < 200) or (row["n"] == 3 and row["p"] == "a")
            )
        ),
    ),
    delete_from(
        "delete: IN a subquery",
        "id IN (SELECT id FROM s WHERE p IS NOT NULL)",
        _KEYS,
        deleted=frozenset({101, 102}),
        source_rows=4,
        smoke=True,
    ),
    delete_from(
        "delete: NOT IN a subquery without NULLs",
        "p = 'a' AND id NOT IN (SELECT s.id FROM S)",
        _KEYS,
        deleted=ids(lambda row: row["p"] == "a" and row["id"] not in (101, 102)),
    ),
    delete_from(
        "delete: NOT IN a subquery with NULL deletes nothing",
        "id NOT IN (SELECT id FROM s)",
        _WITH_NULL,
    ),
    delete_from(
        "delete: NOT IN a subquery without rows, for NULL too",
        "k NOT IN (SELECT id FROM s WHERE id = 7) AND p = 'b'",
        _KEYS,
        deleted=ids(lambda row: row["p"] == "b"),
    ),
    delete_from(
        "delete: correlated EXISTS",
        "EXISTS (SELECT 1 FROM s WHERE s.id = t.id AND s.p <=> t.p)",
        _KEYS,
        deleted=frozenset({101, 400}),
        source_rows=4,
    ),
    delete_from(
        "delete: correlated NOT EXISTS and a subquery behind OR",
        "NOT EXISTS (SELECT 1 FROM s WHERE s.p = t.p) OR id IN (SELECT id FROM s)",
        _KEYS,
        deleted=ids(lambda row: row["p"] != "a" or row["id"] in (101, 102)),
    ),
    delete_from(
        "delete: a scalar subquery, a correlated one, and several columns IN",
        "id = (SELECT max(id) FROM s WHERE p = 'x')"
        " OR n < (SELECT count(*) FROM s WHERE s.id = t.id)"
        " OR (id, p) IN (SELECT id - 1, 'a' FROM s)",
        _KEYS,
        deleted=frozenset({102, 400, 100, 101}),
    ),
    delete_from(
        "delete: * in a subquery keeps the order of the source's columns",
        "(v, req) IN (SELECT * FROM s)",
        "VALUES ('v101', 'r'), ('r', 'v102') AS s(z, a)",
        deleted=frozenset({101}),
        source_rows=2,
    ),
    delete_from(
        "delete: a subquery that renames, leaves out or counts columns",
        "id IN (SELECT y FROM s AS q(x, y, z)) AND p IN (SELECT z FROM s)"
        " AND n < (SELECT count(*) FROM s)",
        "VALUES ('x', 101, 'a'), ('y', 102, 'a'), ('z', 120, 'x') AS s(b, a, z)",
        deleted=frozenset({101, 102}),
        source_rows=3,
    ),
    delete_from(
        "delete: a subquery that only counts",
        "n < (SELECT count(*) FROM s)",
        "VALUES (7), (7) AS s(id)",
        deleted=ids(lambda row: row["n"] in (0, 1)),
        source_rows=2,
    ),
    delete_from(
        "delete: a subquery with WITH and VALUES",
        "id IN (WITH few AS (SELECT id FROM s WHERE p = 'a') SELECT * FROM few)"
        " OR id IN (SELECT * FROM VALUES (105L), (106L))",
        _KEYS,
        deleted=frozenset({101, 105, 106}),
    ),
    delete_from(
        "delete: columns of subqueries that no expression names",
        "(id, p) IN (TABLE s) OR (id - 1, p) IN (SELECT * FROM s WHERE id = 1 UNION ALL TABLE s)"
        " OR (id - 7, p) IN (WITH few AS (TABLE s) SELECT * FROM few EXCEPT SELECT 102, 'x')",
        _KEYS,
        deleted=frozenset({101, 102, 108}),
        source_rows=4,
    ),
    delete_from(
        "delete: a subquery over the table itself",
        "id IN (SELECT max(id) FROM target GROUP BY p HAVING p IS NOT NULL)",
        deleted=frozenset({309, 329, 349}),
        source_rows=0,
    ),
    delete_from(
        "delete: a correlated subquery over the table itself keeps the first of each",
        "EXISTS (SELECT 1 FROM target AS o WHERE o.n = t.n AND o.id < t.id)",
        deleted=ids(lambda row: row["n"] is not None and row["id"] >= 110),
    ),
    delete_from(
        "delete: a random source means one set of keys",
        "id IN (SELECT id FROM s) AND id NOT IN (SELECT id FROM s)",
        _RANDOM,
        source_rows=40,
    ),
    update_set(
        "update: values see the old row",
        {"v": "concat(v, '-', id)", "n": "k", "k": "n", "req": "v"},
        "id BETWEEN 101 AND 102",
        updated={
            101: {"v": "v101-101", "n": 101, "k": 1, "req": "v101"},
            102: {"v": "v102-102", "n": 102, "k": 2, "req": "v102"},
        },
        source_rows=0,
        smoke=True,
    ),
    update_set(
        "update: every row",
        {"n": "1"},
        None,
        updated={row["id"]: {"n": 1} for row in ORDERS.rows},
    ),
    update_set("update: a condition that is never TRUE", {"n": "1"}, "id < 0 AND id > 0"),
    update_set(
        "update: the same value is an update too",
        {"n": "n"},
        "id = 101",
        updated={101: {}},
    ),
    update_set(
        "update: rows move to other partitions, new and old",
        {"p": "CASE WHEN n = 1 THEN 'b' WHEN n = 2 THEN 'new' WHEN n = 3 THEN NULL ELSE p END"},
        "p = 'a' AND n BETWEEN 1 AND 4",
        updated={
            hundred + n: {"p": p}
            for hundred in (100, 200, 300)
            for n, p in ((1, "b"), (2, "new"), (3, None), (4, "a"))
        },
    ),
    update_set(
        "update: by subqueries, with one of the same name as a column of the table",
        {"v": "'in'", "n": "n + 1"},
        "id IN (SELECT id FROM s) AND NOT EXISTS (SELECT id FROM s WHERE s.p = t.p)",
        _KEYS,
        updated={400: {"v": "in", "n": 1}},
        source_rows=4,
    ),
    update_set(
        "update: a nondeterministic value",
        {"v": "substr(uuid(), 1, 0)"},
        "id = 101",
        updated={101: {"v": ""}},
    ),
    # What is refused.
    delete_from(
        "delete: a nondeterministic condition",
        "rand() < 2",
        fails=fails(ErrorCode.EXPRESSION_NOT_ALLOWED, "WHERE", "rand() < 2", "nondeterministic"),
    ),
    delete_from(
        "delete: a nondeterministic subquery",
        "id IN (SELECT id FROM s WHERE rand() < 2)",
        fails=fails(ErrorCode.EXPRESSION_NOT_ALLOWED, "WHERE", "nondeterministic"),
    ),
    delete_from(
        "delete: a condition that is not boolean",
        "id + 1",
        fails=fails(ErrorCode.TYPE_MISMATCH, "WHERE", "bigint", "boolean"),
    ),
    delete_from(
        "delete: a subquery that is not boolean",
        "(SELECT max(id) FROM s)",
        fails=fails(ErrorCode.TYPE_MISMATCH, "WHERE"),
    ),
    delete_from(
        "delete: an aggregate",
        "id = max(id)",
        fails=fails(ErrorCode.EXPRESSION_NOT_ALLOWED, "WHERE", "aggregate"),
    ),
    delete_from(
        "delete: an aggregate beside a subquery",
        "id = max(id) AND id IN (SELECT id FROM s)",
        fails=fails(ErrorCode.EXPRESSION_NOT_ALLOWED, "WHERE", "aggregate"),
    ),
    delete_from(
        "delete: a condition that is no expression",
        "id = = 1",
        fails=fails(ErrorCode.SYNTAX_ERROR, "WHERE", "id = = 1"),
    ),
    delete_from(
        "delete: a column that is not there",
        "nope = 1",
        fails=fails(ErrorCode.COLUMN_NOT_FOUND, "WHERE", "nope"),
    ),
    delete_from(
        "delete: the name of a source is no alias of the table",
        "s.id = 1",
        fails=fails(ErrorCode.COLUMN_NOT_FOUND, "WHERE", "s"),
    ),
    delete_from(
        "delete: a subquery over what is no source",
        "id IN (SELECT id FROM nothing)",
        fails=fails(ErrorCode.TABLE_NOT_FOUND, "WHERE", "nothing"),
    ),
    Behaviour(
        "update: an alias of characters that only backticks can hold",
        "VALUES (0) AS s(id)",
        (),
        statement=UpdateSpec(
            "t.x; `y` -- '",
            (Assignment("`t.x; ``y`` -- '`.n", "`t.x; ``y`` -- '`.n + 1"),),
            "`t.x; ``y`` -- '`.id = 101",
        ),
        updated={101: {"n": 2}},
        matched=0,
    ),
    delete_from(
        "delete: the current time is the same in a source and in WHERE",
        "id IN (SELECT id FROM s WHERE c = current_timestamp() AND d = current_date)",
        "(SELECT 101 AS id, now() AS c, curdate() AS d) AS s",
        deleted=frozenset({101}),
        source_rows=1,
    ),
    update_set(
        "update: a column that is not there",
        {"nope": "1"},
        None,
        fails=fails(ErrorCode.COLUMN_NOT_FOUND, "UPDATE", "nope"),
    ),
    update_set(
        "update: a column twice",
        {"n": "1", "t.N": "2"},
        None,
        fails=fails(ErrorCode.DUPLICATE_ASSIGNMENT, "UPDATE", "n is assigned twice"),
    ),
    update_set(
        "update: a value of another type",
        {"n": "true"},
        None,
        fails=fails(ErrorCode.TYPE_MISMATCH, "n", "boolean", "int"),
    ),
    update_set(
        "update: NULL into NOT NULL",
        {"req": "v"},
        "id = 108",
        fails=fails(ErrorCode.NOT_NULL_VIOLATION, "req"),
    ),
    update_set(
        "update: a value that does not fit",
        {"n": "id * 100000000"},
        "id = 101",
        fails=fails(ErrorCode.VALUE_NOT_STORABLE, "n", "10100000000"),
    ),
]
