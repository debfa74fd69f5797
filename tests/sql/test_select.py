"""A text that is only a query: its tables become views, anything else is refused."""

from __future__ import annotations

import pytest

from airflow_provider_merge.sql.parser import parse_query
from spark_jobs.contract.request import SqlSource, TableName, TableSource
from spark_jobs.errors import JobError

ORDERS = TableSource("shop__orders", TableName("shop", "orders"))


def test_the_query_reads_views_of_its_tables() -> None:
    name, sources = parse_query(
        "-- the late ones\nSELECT o.id FROM shop.orders AS o JOIN new USING (id) LIMIT 5;", ["new"]
    )

    query = SqlSource("query", "SELECT o.id FROM shop__orders AS o JOIN new USING (id) LIMIT 5")
    assert (name, sources) == ("query", (ORDERS, query))


@pytest.mark.parametrize(
    ("sql", "query"),
    [
        (
            "WITH a AS (SELECT 1 AS x), b (y) AS (SELECT * FROM a) SELECT (1) delete FROM b",
            "WITH a AS (SELECT 1 AS x), b (y) AS (SELECT * FROM a) SELECT (1) delete FROM b",
        ),
        ("(SELECT 1) UNION ALL (SELECT 2)", "(SELECT 1) UNION ALL (SELECT 2)"),
        ("FROM shop.orders WHERE a = 1", "SELECT * FROM shop__orders AS orders WHERE a = 1"),
        ("VALUES (1), (2)", "VALUES (1), (2)"),
        ("TABLE shop.orders", "TABLE shop__orders"),
        ("SELECT insert, update FROM orders", "SELECT insert, update FROM shop__orders AS orders"),
    ],
)
def test_forms_of_a_query(sql: str, query: str) -> None:
    _, sources = parse_query(sql, database="shop")
    assert sources[-1] == SqlSource("query", query)


def test_the_view_is_called_like_nothing_in_the_text() -> None:
    name, sources = parse_query("SELECT * FROM shop.query AS query")
    assert name == sources[-1].name == "query_2"


@pytest.mark.parametrize(
    ("sql", "place"),
    [
        ("DELETE FROM a.b", "line 1, column 1: DELETE is not a part"),
        ("WITH x AS (SELECT 1) DELETE FROM a.b", "line 1, column 22: DELETE is not a part"),
        ("WITH x (y) AS (SELECT 1)\nINSERT INTO a.b TABLE x", "line 2, column 1: INSERT is no"),
        ("FROM a.b INSERT INTO c.d SELECT *", "line 1, column 10: INSERT is not a part"),
        ("WITH x AS (FROM a.b) FROM x INSERT OVERWRITE c.d SELECT 1", "column 29: INSERT is no"),
        ("SHOW TABLES", "line 1, column 1: SHOW is not a part"),
        ("", "line 1, column 1: there is no query"),
        ("SELECT 1; SELECT 2", "line 1, column 11: a second statement"),
        ("SELECT * FROM orders", "line 1, column 15: orders is neither"),
        ("SELECT * FROM a.b VERSION AS OF now()", "column 33: expected the id of a snapshot"),
    ],
)
def test_what_is_no_query(sql: str, place: str) -> None:
    with pytest.raises(JobError, match=place) as caught:
        parse_query(sql)
    assert caught.value.remedy or caught.value.code.name == "NOT_SUPPORTED"
