"""Wrong texts: the code, the line and column, and what to do."""

from __future__ import annotations

import pytest

from tests.sql.reading import refusal

SYNTAX = {
    "": (1, 1, "there is no statement"),
    " -- nothing\n": (2, 1, "there is no statement"),
    "SELECT 1": (1, 1, "SELECT does not start a statement that is accepted"),
    "WITH a AS (SELECT 1) SELECT * FROM a": (1, 22, "SELECT does not start a statement"),
    "MERGE d.t USING d.s": (1, 7, "expected INTO, found 'd'"),
    "MERGE INTO d.t USNG d.s ON a": (1, 21, "expected USING, found 'd'"),
    "MERGE INTO d.t ON a": (1, 16, "expected USING, found 'ON'"),
    "MERGE INTO d.t USING d.s": (1, 25, "expected ON, found the end"),
    "MERGE INTO d.t USING d.s ON": (1, 28, "expected a condition, found the end"),
    "MERGE INTO d.t USING d.s ON WHEN MATCHED THEN DELETE": (1, 29, "expected a condition"),
    "MERGE INTO d.t USING d.s ON a": (1, 30, "expected WHEN MATCHED or WHEN NOT MATCHED"),
    "MERGE INTO d.t USING d.s ON a\nWHEN MACHED THEN DELETE": (2, 6, "expected MATCHED or NOT"),
    "MERGE INTO d.t USING d.s ON a\nWHEN MATCHED\n\tTHEN REMOVE": (3, 7, "expected UPDATE or"),
    "MERGE INTO d.t USING d.s ON a WHEN MATCHED DELETE": (1, 44, "expected THEN, found 'DELETE'"),
    "MERGE INTO d.t USING d.s ON a WHEN MATCHED AND b DELETE": (1, 56, "expected THEN"),
    "MERGE INTO d.t USING d.s ON a WHEN MATCHED AND THEN DELETE": (1, 48, "expected a condition"),
    "MERGE INTO d.t USING d.s ON a WHEN MATCHED THEN INSERT *": (1, 49, "expected UPDATE or"),
    "MERGE INTO d.t USING d.s ON a WHEN NOT MATCHED THEN DELETE": (1, 53, "expected INSERT"),
    "MERGE INTO d.t USING d.s ON a WHEN NOT MATCHED BY T THEN": (1, 48, "expected BY TARGET"),
    "MERGE INTO d.t USING d.s ON a WHEN NOT MATCHED THEN INSERT BY NAME": (1, 60, "expected *, a"),
    "MERGE INTO d.t USING d.s ON a WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *": (
        1,
        74,
        "expected the name of a column, found '*'",
    ),
    "MERGE INTO d.t USING d.s ON a WHEN MATCHED THEN UPDATE SET a b": (1, 62, "expected =, found"),
    "MERGE INTO d.t USING d.s ON a WHEN MATCHED THEN UPDATE SET a = , b = 1": (1, 64, "a value"),
    "MERGE INTO d.t USING d.s ON a WHEN MATCHED THEN UPDATE SET a = 1,": (1, 66, "the name of a"),
    "MERGE INTO d.t USING d.s ON a WHEN NOT MATCHED THEN INSERT () VALUES (1)": (1, 61, "the name"),
    "MERGE INTO d.t USING d.s ON a WHEN NOT MATCHED THEN INSERT (a) VALUES ()": (1, 72, "a value"),
    "MERGE INTO d.t USING d.s ON a WHEN NOT MATCHED THEN INSERT (a) VALUES 1": (
        1,
        71,
        "expected (",
    ),
    "MERGE INTO d.t USING d.s ON a WHEN MATCHED THEN DELETE FROM": (1, 56, "expected the end of"),
    "MERGE INTO d.t USING () AS s ON a WHEN MATCHED THEN DELETE": (1, 23, "expected a query"),
    "MERGE INTO d.t USING (d.s) AS s ON a WHEN MATCHED THEN DELETE": (1, 23, "expected a query"),
    "MERGE INTO d.t USING (SELECT 1) (a) ON a WHEN MATCHED THEN DELETE": (1, 33, "an alias"),
    "MERGE INTO d.t USING (SELECT 1) s() ON a WHEN MATCHED THEN DELETE": (1, 35, "of a column"),
    "MERGE INTO d.t x(a) USING d.s ON a WHEN MATCHED THEN DELETE": (1, 17, "no column names"),
    "DELETE FROM d.t x(a)": (1, 18, "the target of DELETE takes no column names"),
    "MERGE INTO d.t USING range(3) s ON a WHEN MATCHED THEN DELETE": (1, 22, "takes no function"),
    "UPDATE d.t WHERE a": (1, 12, "expected SET, found 'WHERE'"),
    "UPDATE d.t SET a = 1 WHERE": (1, 27, "expected a condition"),
    "DELETE d.t": (1, 8, "expected FROM, found 'd'"),
    "DELETE FROM d.t USING d.s": (1, 17, "expected the end of the statement, found 'USING'"),
    "DELETE FROM d.t WHERE a = (1": (1, 27, "( is not closed"),
    "DELETE FROM d.t WHERE a = 1)": (1, 28, ") closes nothing"),
    "DELETE FROM d.t WHERE (a[1)": (1, 27, ") closes nothing"),
    "DELETE FROM d.t WHERE a =\n 'x": (2, 2, "' is not closed"),
    'DELETE FROM d.t WHERE a = "x\\"': (1, 27, '" is not closed'),
    "DELETE FROM d.t WHERE `a = 1": (1, 23, "` is not closed"),
    "DELETE FROM d.t WHERE `` = 1": (1, 23, "an empty name"),
    "DELETE FROM d.t /* WHERE /* a */": (1, 17, "the comment is not closed"),
    "DELETE /*+ FAST */ FROM d.t": (1, 8, "a hint can stand only behind SELECT"),
    "DELETE FROM d.t WHERE CASE WHEN a THEN b": (1, 23, "CASE has no END"),
    "DELETE FROM d.t WHERE a = 1; DELETE FROM d.t": (1, 30, "a second statement begins"),
    "DELETE FROM d.t WHERE a IN (SELECT * FROM WHERE b)": (1, 43, "expected a table or a query"),
    "DELETE FROM d.t WHERE a IN (SELECT * FROM 'x')": (1, 43, "expected a table or a query"),
    "DELETE FROM d.t WHERE a = '\ud800'": (1, 28, "no Unicode text"),
    "WITH a AS (SELECT 1), A AS (SELECT 2) DELETE FROM d.t": (1, 23, "A is defined twice"),
    "WITH A AS (SELECT 1), a AS (SELECT 2) DELETE FROM d.t": (1, 23, "a is defined twice"),
    "WITH a AS (d.t) DELETE FROM d.t": (1, 12, "expected a query"),
    "DELETE FROM d.t WHERE " + "(" * 300 + ")" * 300: (1, 223, "more than 200 nested"),
}


@pytest.mark.parametrize(("sql", "expected"), SYNTAX.items(), ids=[each[:70] for each in SYNTAX])
def test_syntax_error(sql, expected):
    line, column, problem = expected
    error = refusal(sql)
    assert error.code.name == "SYNTAX_ERROR"
    assert error.message.startswith(f"line {line}, column {column}: ")
    assert problem in error.message


INVALID = {
    "unreachable clause": (
        "MERGE INTO d.t USING d.s ON a\nWHEN MATCHED THEN DELETE\n WHEN MATCHED THEN UPDATE SET *",
        "line 3, column 2: clause 2 (WHEN MATCHED) can never apply",
    ),
    "number of values": (
        "MERGE INTO d.t USING d.s ON a\nWHEN NOT MATCHED THEN INSERT (a, b) VALUES (1)",
        "line 2, column 23: columns: INSERT names 2 columns but has 1 values",
    ),
    "same alias": (
        "MERGE INTO d.t USING e.T ON a WHEN MATCHED THEN DELETE",
        "line 1, column 22: target and source are both called T",
    ),
    "four parts": ("DELETE FROM c.n.d.t", "line 1, column 13: c.n.d.t has 4 parts"),
    "two catalogs": (
        "INSERT INTO c.d.t SELECT * FROM e.d.t",
        "line 1, column 33: e is another catalog than c, and a statement has one",
    ),
    "no database": ("DELETE FROM t", "line 1, column 13: t is neither"),
    "files": (
        "DELETE FROM d.t WHERE a IN (SELECT a FROM parquet.`/x/y`)",
        "line 1, column 43: table: '/x/y' is not a name",
    ),
}


@pytest.mark.parametrize(("sql", "message"), INVALID.values(), ids=INVALID)
def test_what_no_request_can_hold(sql, message):
    error = refusal(sql)
    assert error.code.name == "REQUEST_INVALID"
    assert error.message.startswith(message)
    assert error.remedy or "columns" in error.message


NOT_SUPPORTED = {
    "recursive": "WITH RECURSIVE a AS (SELECT 1) DELETE FROM d.t",
    "nested recursive": "DELETE FROM d.t WHERE a IN (WITH RECURSIVE b AS (SELECT 1) TABLE b)",
    "version of the target": "MERGE INTO d.t VERSION AS OF 1 USING d.s ON a "
    "WHEN MATCHED THEN DELETE",
    "time of a query": "WITH x AS (SELECT 1) INSERT INTO d.t TABLE x TIMESTAMP AS OF '2024-01-01'",
    "time by a function": "DELETE FROM d.t WHERE a IN "
    "(SELECT 1 FROM d.s FOR TIMESTAMP AS OF now())",
    "time by a sum": "DELETE FROM d.t WHERE a IN (SELECT 1 FROM d.s "
    "TIMESTAMP AS OF '2024-01-01' - INTERVAL 1 DAY)",
    "identifier": "DELETE FROM d.t WHERE a IN (SELECT 1 FROM IDENTIFIER('d.s'))",
}


@pytest.mark.parametrize("sql", NOT_SUPPORTED.values(), ids=NOT_SUPPORTED)
def test_refused_with_the_place(sql):
    error = refusal(sql)
    assert error.code.name == "NOT_SUPPORTED"
    assert error.message.startswith("line 1, column ")


SUBQUERIES = {
    "on": "MERGE INTO d.t USING d.s ON a = (SELECT 1) WHEN MATCHED THEN DELETE",
    "condition": "MERGE INTO d.t USING d.s ON a WHEN MATCHED AND b IN (SELECT 1) THEN DELETE",
    "value": "MERGE INTO d.t USING d.s ON a WHEN MATCHED THEN UPDATE SET a = f(1, (SELECT 1))",
    "insert": "MERGE INTO d.t USING d.s ON a WHEN NOT MATCHED THEN INSERT VALUES ((SELECT 1))",
    "value with": "MERGE INTO d.t USING d.s ON a WHEN MATCHED THEN UPDATE SET a = "
    "(WITH x AS (SELECT 1) SELECT * FROM x)",
    "from first": "MERGE INTO d.t USING d.s ON a = (FROM d.x SELECT 1) WHEN MATCHED THEN DELETE",
}


@pytest.mark.parametrize("sql", SUBQUERIES.values(), ids=SUBQUERIES)
def test_subqueries_where_none_can_stand(sql):
    error = refusal(sql)
    assert error.code.name == "EXPRESSION_NOT_ALLOWED"
    assert "a subquery can stand neither" in error.message
    assert error.remedy


def test_the_place_is_shown():
    error = refusal("DELETE FROM d.t\nWHERE a = 1 OR\n      b = 'x\n  and so on")
    assert error.message == "line 3, column 11: ' is not closed (near \"'x\")"
