"""SQL text or parts: exactly one of them, equal contracts, and errors when the DAG is parsed."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_merge.assets import table_asset
from airflow_provider_merge.operators.clauses import (
    when_matched,
    when_not_matched,
    when_not_matched_by_source,
)
from airflow_provider_merge.operators.delete_from import DeleteFromOperator
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import file_source, sql_source, table_source
from airflow_provider_merge.operators.update import UpdateOperator
from spark_jobs.errors import JobError

FILE = file_source("/data/{{ ds }}", "parquet")
MERGE = "MERGE INTO shop.orders USING shop.updates s ON orders.id = s.id WHEN MATCHED THEN DELETE"


def asked(
    operator: MergeIntoOperator | DeleteFromOperator | UpdateOperator,
) -> tuple[Any, Any, Any]:
    """What the job would be asked for."""
    return operator.target_table(), operator.statement(), operator.request_sources()


EQUAL = {
    "merge with a table": (
        MergeIntoOperator(
            task_id="sql",
            sql="""
            MERGE INTO shop.orders AS t USING shop.updates AS s ON t.id = s.id
            WHEN MATCHED AND s.gone THEN DELETE
            WHEN MATCHED THEN UPDATE SET amount = s.amount, address.city = upper(s.city)
            WHEN NOT MATCHED THEN INSERT (id, amount) VALUES (s.id, DEFAULT)
            WHEN NOT MATCHED BY SOURCE AND t.day < '2020' THEN UPDATE SET state = 'old'
            """,
            cardinality="strict",
        ),
        MergeIntoOperator(
            task_id="parts",
            target="shop.orders",
            source=table_source("shop.updates"),
            on="t.id = s.id",
            when=[
                when_matched("s.gone").delete(),
                when_matched().update({"amount": "s.amount", "address.city": "upper(s.city)"}),
                when_not_matched().insert({"id": "s.id", "amount": "DEFAULT"}),
                when_not_matched_by_source("t.day < '2020'").update({"state": "'old'"}),
            ],
            cardinality="strict",
        ),
    ),
    "merge with a query": (
        MergeIntoOperator(
            task_id="sql",
            sql="""
            MERGE INTO shop.orders a USING (SELECT DISTINCT * FROM new) b ON a.id = b.id
            WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
            """,
            sources={"new": FILE},
        ),
        MergeIntoOperator(
            task_id="parts",
            target="shop.orders",
            source=sql_source("SELECT DISTINCT * FROM new", sources={"new": FILE}),
            on="a.id = b.id",
            when=[when_matched().update_all(), when_not_matched().insert_all()],
            target_alias="a",
            source_alias="b",
        ),
    ),
    "delete": (
        DeleteFromOperator(task_id="sql", sql="DELETE FROM shop.orders AS o WHERE o.day < '2020'"),
        DeleteFromOperator(
            task_id="parts", target="shop.orders", where="o.day < '2020'", alias="o"
        ),
    ),
    "delete by an alias in backticks": (
        DeleteFromOperator(task_id="sql", sql="DELETE FROM shop.orders AS `o, p` WHERE `o, p`.x"),
        DeleteFromOperator(task_id="parts", target="shop.orders", where="`o, p`.x", alias="`o, p`"),
    ),
    "delete everything": (
        DeleteFromOperator(task_id="sql", sql="DELETE FROM shop.orders"),
        DeleteFromOperator(task_id="parts", target="shop.orders"),
    ),
    "delete with subqueries": (
        DeleteFromOperator(
            task_id="sql",
            sql="DELETE FROM orders WHERE id IN (SELECT id FROM gone) OR id IN (TABLE shop.old)",
            sources={"gone": FILE},
            database="shop",
        ),
        DeleteFromOperator(
            task_id="parts",
            target="shop.orders",
            where="id IN (SELECT id FROM gone) OR id IN (TABLE old)",
            sources={"gone": FILE},
            database="shop",
        ),
    ),
    "update with subqueries as values": (
        UpdateOperator(
            task_id="sql",
            sql="UPDATE shop.orders SET a = (SELECT max(a) FROM shop.orders), b = (FROM new SELECT "
            "min(x)) WHERE id IN (SELECT id FROM shop.orders) AND c IN (TABLE shop.old)",
            sources={"new": FILE},
        ),
        UpdateOperator(
            task_id="parts",
            target="shop.orders",
            set={"a": "(SELECT max(a) FROM shop.orders)", "b": "(FROM new SELECT min(x))"},
            where="id IN (SELECT id FROM shop.orders) AND c IN (TABLE shop.old)",
            sources={"new": FILE},
        ),
    ),
    "update": (
        UpdateOperator(
            task_id="sql",
            sql="UPDATE shop.orders SET a = a + 1, b.c = DEFAULT WHERE orders.a IS NULL",
        ),
        UpdateOperator(
            task_id="parts",
            target="shop.orders",
            set={"a": "a + 1", "b.c": "DEFAULT"},
            where="orders.a IS NULL",
        ),
    ),
}


@pytest.mark.parametrize(("text", "parts"), EQUAL.values(), ids=EQUAL)
def test_text_and_parts_ask_for_the_same(
    text: MergeIntoOperator | DeleteFromOperator | UpdateOperator,
    parts: MergeIntoOperator | DeleteFromOperator | UpdateOperator,
) -> None:
    assert asked(text) == asked(parts)


WRONG = {
    "neither": (MergeIntoOperator, {}, "target: missing"),
    "part missing": (UpdateOperator, {"target": "shop.orders"}, "set: missing"),
    "both": (MergeIntoOperator, {"sql": MERGE, "on": "a"}, "on: cannot be combined with"),
    "target and sql": (
        DeleteFromOperator,
        {"sql": "DELETE FROM a.b", "target": "a.b"},
        "target: cannot be combined with sql",
    ),
    "sources without sql": (
        MergeIntoOperator,
        {
            "target": "shop.orders",
            "source": table_source("a.b"),
            "on": "t.id = s.id",
            "when": [when_matched().delete()],
            "sources": {"x": FILE},
        },
        "sources: belongs to sql",
    ),
    "syntax": (
        MergeIntoOperator,
        {"sql": "MERGE INTO shop.orders\n  USNG shop.updates"},
        "sql: line 2, column 8: expected USING",
    ),
    "another statement": (
        MergeIntoOperator,
        {"sql": "DELETE FROM shop.orders"},
        "sql: is a statement of the kind DELETE, not MERGE",
    ),
    "unreachable": (
        MergeIntoOperator,
        {"sql": f"{MERGE} WHEN MATCHED THEN DELETE"},
        r"sql: line 1, column 90: clause 2 \(WHEN MATCHED\) can never apply",
    ),
    "hidden name in ON": (
        MergeIntoOperator,
        {"sql": MERGE.replace("s.id", "updates.id")},
        "sql: ON: unknown alias 'updates'",
    ),
    "hidden name in a condition": (
        MergeIntoOperator,
        {"sql": MERGE.replace("MATCHED", "MATCHED AND updates.x")},
        "sql: clause 1, condition: unknown alias 'updates'",
    ),
    "no row of that side": (
        MergeIntoOperator,
        {"sql": f"{MERGE} WHEN NOT MATCHED THEN INSERT (a) VALUES (orders.a)"},
        "sql: clause 2, value of a: WHEN NOT MATCHED has no row of 'orders'",
    ),
    "unknown source": (
        DeleteFromOperator,
        {"sql": "DELETE FROM a.b WHERE c IN (SELECT 1 FROM x)", "sources": {"y": FILE}},
        r"sql: line 1, column 43: x is neither .* \(y\)",
    ),
    "source kind": (
        DeleteFromOperator,
        {"sql": "DELETE FROM a.b WHERE c IN (FROM y)", "sources": {"y": {"kind": "http"}}},
        "sources.y.kind: 'http' is not one of",
    ),
    "source name": (
        DeleteFromOperator,
        {"sql": "DELETE FROM a.b WHERE c = 'x y'", "sources": {"x y": table_source("a.b")}},
        "sources: 'x y' cannot name a source",
    ),
    "sources no dict": (
        DeleteFromOperator,
        {"sql": "DELETE FROM a.b", "sources": ["a.b"]},
        "sources: expected a dict",
    ),
    "cardinality": (
        MergeIntoOperator,
        {"sql": MERGE, "cardinality": "lax"},
        "cardinality: 'lax' is not one of: effective, strict",
    ),
    "where": (
        DeleteFromOperator,
        {"target": "a.b", "where": "x = (1"},
        r"where: line 1, column 5: \( is not closed",
    ),
    "more than a condition": (
        DeleteFromOperator,
        {"target": "a.b", "where": "x = 1; y"},
        "where: line 1, column 6: expected the end of the condition, found ';'",
    ),
    "qualified with the database": (
        DeleteFromOperator,
        {"target": "a.b", "where": "A.b.x = 1"},
        r"where: line 1, column 1: A\.b\.x names the table with its database",
    ),
    "sql no text": (DeleteFromOperator, {"sql": ["DELETE FROM a.b"]}, "sql: expected text"),
    "empty where": (
        DeleteFromOperator,
        {"target": "a.b", "where": " "},
        "where: is empty Remedy: .*ALL_ROWS",
    ),
    "hidden name in where": (
        DeleteFromOperator,
        {"target": "a.b", "where": "b.x = 1", "alias": "y"},
        "where: unknown alias 'b'; the target is called 'y'",
    ),
    "hidden name in WHERE": (
        DeleteFromOperator,
        {"sql": "DELETE FROM a.b AS y WHERE b.x = 1"},
        "sql: WHERE: unknown alias 'b'; the target is called 'y'",
    ),
    "hidden name in a value": (
        UpdateOperator,
        {"target": "a.b", "set": {"x": "b.x + 1"}, "alias": "y"},
        "set.x: unknown alias 'b'",
    ),
    "assigned twice": (
        UpdateOperator,
        {"sql": "UPDATE a.b SET x = 1, b . `X` = 2"},
        "sql: SET: x is assigned twice",
    ),
    "struct and field": (
        UpdateOperator,
        {"target": "a.b", "set": {"x.y.z": "1", "x.Y": "2"}},
        "set: both x.y and its field x.y.z are assigned",
    ),
    "assigned twice in a clause": (
        MergeIntoOperator,
        {"sql": MERGE.replace("DELETE", "UPDATE SET c = 1, orders.c = 2")},
        "sql: clause 1: c is assigned twice",
    ),
    "inserted twice": (
        MergeIntoOperator,
        {
            "target": "shop.orders",
            "source": table_source("a.b"),
            "on": "t.id = s.id",
            "when": [when_not_matched().insert({"c": "1", "C": "2"})],
        },
        r"when\[0\]: c is assigned twice",
    ),
    "empty set": (UpdateOperator, {"target": "a.b", "set": {}}, "set: is empty"),
    "set no dict": (UpdateOperator, {"target": "a.b", "set": ["a"]}, "set: expected a dict"),
    "value no text": (UpdateOperator, {"target": "a.b", "set": {"a": 1}}, "set.a: expected text"),
    "empty value": (UpdateOperator, {"target": "a.b", "set": {"a": ""}}, "assignment to a: value"),
    "time travel": (
        MergeIntoOperator,
        {"sql": MERGE.replace(" s ON", " TIMESTAMP AS OF now() s ON")},
        "sql: line 1, column 59: TIMESTAMP AS OF takes no expression here",
    ),
}


@pytest.mark.parametrize(("operator", "parameters", "message"), WRONG.values(), ids=WRONG)
def test_found_at_parse(
    operator: type[MergeIntoOperator | UpdateOperator | DeleteFromOperator],
    parameters: dict[str, Any],
    message: str,
) -> None:
    with pytest.raises(JobError, match=f"^[A-Z_]+: task '[a-z]+': {message}"):
        operator(task_id="wrong", **parameters)


def test_codes() -> None:
    for sql, code in {
        "DELETE FROM": "SYNTAX_ERROR",
        "DELETE FROM c.n.d.t": "REQUEST_INVALID",
        "WITH RECURSIVE a AS (SELECT 1) DELETE FROM d.t": "NOT_SUPPORTED",
    }.items():
        with pytest.raises(JobError) as caught:
            DeleteFromOperator(task_id="wrong", sql=sql)
        assert caught.value.code.name == code


LEGAL = {
    "template in the text": (MergeIntoOperator, {"sql": "MERGE INTO {{ params.table }}"}),
    "block in the text": (DeleteFromOperator, {"sql": "{% if x %}DELETE{% endif %}"}),
    "a file": (UpdateOperator, {"sql": "update.sql"}),
    "template as database": (DeleteFromOperator, {"sql": "DELETE FROM t", "database": "{{ x }}"}),
    "template as sources": (DeleteFromOperator, {"sql": MERGE, "sources": "{{ x }}"}),
    "alias like the database": (
        DeleteFromOperator,
        {"target": "a.b", "where": "a.b.x = 1", "alias": "A"},
    ),
    "template as sources of where": (
        DeleteFromOperator,
        {"target": "a.b", "where": "c IN (SELECT 1 FROM x)", "sources": "{{ x }}"},
    ),
    "template in where": (DeleteFromOperator, {"target": "a.b", "where": "x = {{ y }}"}),
    "template in a value": (UpdateOperator, {"target": "a.b", "set": {"a": "{{ y }}"}}),
    "template as set": (UpdateOperator, {"target": "a.b", "set": "{{ y }}"}),
    "fields of one struct": (
        UpdateOperator,
        {"target": "a.b", "set": {"x.y": "1", "x.z": "2", "x y": "3"}},
    ),
    "template as target": (UpdateOperator, {"target": "{{ x }}", "set": {"a": "1"}}),
}


@pytest.mark.parametrize(("operator", "parameters"), LEGAL.values(), ids=LEGAL)
def test_never_rejected_at_parse(
    operator: type[MergeIntoOperator | DeleteFromOperator | UpdateOperator],
    parameters: dict[str, Any],
) -> None:
    operator(task_id="later", **parameters)


def test_a_text_is_checked_beside_templates_in_its_sources() -> None:
    with pytest.raises(JobError, match="line 1, column 23: expected ON"):
        MergeIntoOperator(task_id="m", sql="MERGE INTO a.b USING x", sources={"x": FILE})


def test_the_target_of_a_text_is_an_outlet() -> None:
    operator = DeleteFromOperator(task_id="d", sql="DELETE FROM shop.`a.b`")
    assert operator.outlets == [table_asset("paimon_default", "shop.`a.b`")]
    assert DeleteFromOperator(task_id="e", sql="DELETE FROM {{ x }}").outlets == []
