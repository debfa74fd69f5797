"""Wrong parameters: found when the DAG is parsed, else before Spark starts; always with a name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_merge.operators.clauses import (
    when_matched,
    when_not_matched,
    when_not_matched_by_source,
)
from airflow_provider_merge.operators.create_table import CreateTableOperator, column
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import file_source, sql_source, table_source
from spark_jobs.errors import JobError, RequestError

GOOD: dict[str, Any] = {
    "task_id": "merge",
    "target": "shop.orders",
    "source": table_source("shop.updates"),
    "on": "t.id = s.id",
    "when": [when_matched().update_all()],
}
INSERT_AFTER_MATCHED = {"when": "matched", "action": {"kind": "insert", "values": {"id": "s.id"}}}

WRONG = {
    "no clause": ({"when": []}, "when: is empty Remedy: Give it"),
    "after unconditional": (
        {"when": [when_matched().delete(), when_matched("s.x").update_all()]},
        r"when\[1\]: clause 2 \(WHEN MATCHED\) can never apply",
    ),
    "insert after matched": (
        {"when": [when_matched("s.x").delete(), INSERT_AFTER_MATCHED]},
        r"when\[1\]: action: WHEN MATCHED takes UPDATE.*not INSERT",
    ),
    "no action": (
        {"when": [when_matched()]},
        r"when\[0\].action: missing Remedy: Say what .*: when_matched\(\).update_all\(\), .update",
    ),
    "misspelt action": ({"when": [{"when": "matched", "action": "remove"}]}, r"when\[0\].action"),
    "empty update": ({"when": [when_matched().update({})]}, r"when\[0\].*at least one assignment"),
    "empty condition": ({"when": [when_matched(" ").delete()]}, r"when\[0\]: condition: is empty"),
    "value no text": (
        {"when": [when_matched().update({"a": 1})]},  # type: ignore[dict-item]
        r"when\[0\].update.a: expected text, found int Remedy: Put it in quotes: '1'",
    ),
    "inserted value is None": (
        {"when": [when_not_matched().insert({"a": None})]},  # type: ignore[dict-item]
        r"when\[0\].insert.a: expected text, found NoneType Remedy: Write 'NULL'",
    ),
    "function of clauses": (
        {"when": [when_not_matched_by_source]},
        r"when\[0\]: when_not_matched_by_source is not called Remedy: Write when_not_matched_by_",
    ),
    "function in place of clauses": ({"when": when_matched}, "when: when_matched is not called"),
    "function of an action": (
        {"when": [when_matched().delete]},
        r"when\[0\]: the function delete is not called Remedy: Put \(\) behind it",
    ),
    "clause no dict": ({"when": ["delete"]}, r"when\[0\]: expected an object"),
    "when no list": (
        {"when": when_matched().delete()},
        r"when: expected a list of .* Write \[when_",
    ),
    "empty on": ({"on": ""}, "on: is empty"),
    "on no text": ({"on": True}, "on: expected text"),
    "alias no name": ({"target_alias": "t, x"}, "target_alias: 't, x' is not an identifier"),
    "alias of the source": ({"source_alias": "s\n"}, r"source_alias: 's\\n' is not an identifier"),
    "alias no text": ({"source_alias": 5}, "source_alias: expected text, found int"),
    "assigned to no column": (
        {"when": [when_matched().update({"a..b": "1"})]},
        r"when\[0\]\.action\.assignments\[0\]: assignment: column: 'a..b' is not the name of",
    ),
    "same alias": ({"source_alias": "T"}, "source_alias: .* both called"),
    "unknown alias in on": ({"on": "t.id = u.id"}, "on: unknown alias 'u'.* Write t or s before"),
    "hidden table name in on": ({"on": "orders.id = s.id"}, "on: unknown alias 'orders'"),
    "hidden table name in condition": (
        {"when": [when_matched("Updates.gone").delete()]},
        r"when\[0\].condition: unknown alias 'updates'",
    ),
    "hidden table name in value": (
        {"when": [when_matched().update({"a": "1 + updates.a"})]},
        r"when\[0\].update.a: unknown alias 'updates'",
    ),
    "target in insert": (
        {"when": [when_not_matched().insert({"a": "t.a"})]},
        r"when\[0\].insert.a: WHEN NOT MATCHED has no row of 't'",
    ),
    "source in by source": (
        {"when": [when_not_matched_by_source("s.a > 1").delete()]},
        r"when\[0\].condition: WHEN NOT MATCHED BY SOURCE has no row of 's'",
    ),
    "cardinality": ({"cardinality": "lax"}, "cardinality: 'lax' is not one of: effective, strict"),
    "target": ({"target": "orders"}, "target: 'orders' is not a table name"),
    "target escapes": ({"target": "shop.`../x`"}, "target: table: '../x'"),
    "source kind": ({"source": {"kind": "http"}}, "source.kind: 'http' is not one of: cdc, "),
    "source no dict": ({"source": "/data/x.csv"}, "source: expected a source, found str"),
    "source table": ({"source": table_source("updates")}, "source.table: 'updates'"),
    "source path": ({"source": file_source("", "csv")}, "source.path: is empty"),
    "source field": (
        {"source": {"kind": "file", "path": "/x", "formt": "csv"}},
        "source.formt: unknown field",
    ),
    "source missing field": ({"source": {"kind": "file", "path": "/x"}}, "source.format: missing"),
    "named source": (
        {"source": sql_source("SELECT 1", sources={"a b": table_source("x.y")})},
        "sources: 'a b' cannot name a source",
    ),
    "options no dict": (
        {"source": file_source("/x", "csv", options=["header"])},  # type: ignore[arg-type]
        "source.options: expected an object, found an array",
    ),
    "named sources no dict": (
        {"source": sql_source("SELECT 1", sources=["a"])},  # type: ignore[arg-type]
        "source.sources: expected a dict of name -> source, found list",
    ),
    "named source kind": (
        {"source": sql_source("SELECT 1", sources={"a": {"kind": "x"}})},
        "source.sources.a.kind: 'x'",
    ),
    "file size": ({"target_file_size": 0}, "target_file_size: 0 is not a positive whole number"),
    "new partitions": (
        {"max_new_partitions": 0},
        "max_new_partitions: 0 is not a positive whole number",
    ),
    "isolation": ({"isolation": "dirty"}, "isolation: 'dirty' is not one of: serializable, snap"),
    "after an ended try": (
        {"after_ended_try": "perhaps"},
        "after_ended_try: 'perhaps' is not one of: fail, skip, run",
    ),
    "share": ({"rewrite_share": 1.5}, "rewrite_share: 1.5 is not a number from 0 to 1"),
    "share as list": ({"rewrite_share": [1]}, r"rewrite_share: \[1\] is not a number from 0 to 1"),
    "share as text": ({"rewrite_share": "all"}, "rewrite_share: 'all' is not a number from 0 to 1"),
    "cores": ({"executor_cores": "two"}, "executor_cores: 'two' is not a positive whole number"),
    "half a core": ({"executor_cores": 1.5}, "executor_cores: 1.5 is not a positive whole number"),
    "list of cores": (
        {"executor_cores": [2]},
        r"executor_cores: \[2\] is not a positive whole num",
    ),
    "conf no dict": ({"conf": ["a"]}, "conf: expected a dict of settings, found list"),
    "conf of the dialect": (
        {"conf": {"spark.sql.parser.escapedStringLiterals": True}},
        r"conf\.spark\.sql\.parser\.escapedStringLiterals: can change what a statement means",
    ),
    "conf of readers": (
        {"conf": {"spark.hadoop.parquet.filter.stats.enabled": False}},
        r"conf\.spark\.hadoop\.parquet\.filter\.stats\.enabled: can change what a statement means",
    ),
    "conf of the zone": (
        {"conf": {"spark.sql.session.timeZone": "UTC"}},
        r".* Remedy: Write session_time_zone=",
    ),
    "deploy mode": ({"deploy_mode": "remote"}, "deploy_mode: 'remote' is not one of"),
    "spark env": ({"spark_env": "env"}, "spark_env: 'env' is not an absolute path"),
}


@pytest.mark.parametrize(("change", "message"), WRONG.values(), ids=WRONG)
def test_found_at_parse(change: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=f"^REQUEST_INVALID: task '[a-z]+': {message}"):
        MergeIntoOperator(**{**GOOD, **change})


# What no SQL of Spark is, and the place that errors name.
NO_EXPRESSION = {
    "t.id = s.id AND": "line 1, column 13: the expression ends in AND, and nothing follows",
    "t.id = s.id -- or\n or -- never": "line 2, column 2: the expression ends in or",
    "t.id =": "line 1, column 6: the expression ends in =",
    "t.id <>": "line 1, column 7: the expression ends in >",
    "t.id >": "line 1, column 6: the expression ends in >",
    "(t.id) *": r"line 1, column 8: the expression ends in \*",
    "s.a IS": "line 1, column 5: the expression ends in IS",
    "(t.id = s.id": r"line 1, column 1: \( is not closed",
    "t.id = s.id)": r"line 1, column 12: \) closes nothing",
    "t.a[1) = s.b": r"line 1, column 6: \) closes nothing",
    "t.id = 'a": "line 1, column 8: ' is not closed",
    "t.id = s.`id": "line 1, column 10: ` is not closed",
    "t.id = s.id /* x": "line 1, column 13: the comment is not closed",
}


@pytest.mark.parametrize(("text", "message"), NO_EXPRESSION.items(), ids=NO_EXPRESSION)
@pytest.mark.parametrize(
    ("place", "parameters"),
    [
        ("on", lambda text: {"on": text, "source": file_source("/{{ ds }}", "csv")}),
        (r"when\[0\].condition", lambda text: {"when": [when_matched(text).delete()]}),
        (r"when\[0\].update.a", lambda text: {"when": [when_matched().update({"a": text})]}),
    ],
    ids=["on", "condition", "value"],
)
def test_a_text_that_is_no_expression(
    text: str, message: str, place: str, parameters: Callable[[str], dict[str, Any]]
) -> None:
    with pytest.raises(RequestError, match=f"^SYNTAX_ERROR: task 'merge': {place}: {message}"):
        MergeIntoOperator(**{**GOOD, **parameters(text)})


def test_a_forgotten_list_of_clauses() -> None:
    without = {name: value for name, value in GOOD.items() if name != "when"}
    with pytest.raises(RequestError, match=r"when: missing Remedy: Give it, such as \[when_match"):
        MergeIntoOperator(**without)


class ResultOfAnotherTask:
    """What Airflow calls an XComArg."""

    def resolve(self, context: Any) -> None:
        raise NotImplementedError


LEGAL = {
    "struct column in condition": {"when": [when_matched("address.city = 'x'").delete()]},
    "struct column in on": {"on": "t.id = s.id AND address.city = s.city"},
    "three parts": {"on": "t.address.city = s.address.city"},
    "names in text": {"on": "t.id = s.id AND s.note <> 'orders.id' AND s.x = \"updates.y\""},
    "names in comments": {"on": "t.id = s.id -- orders.id\n AND /* updates.id */ s.x = 1.5"},
    "backticks": {"on": "t.`orders.id` = `s`.id"},
    "lambda": {"when": [when_matched("exists(s.items, orders -> orders.id > 1)").delete()]},
    "function": {"when": [when_matched("orders.is_old(s.id)").delete()]},
    "bare names": {"on": "order_id = id"},
    "alias like the table": {"target_alias": "orders", "on": "orders.id = s.id"},
    "numbers": {"on": "t.id = s.id AND 1.e > 0 AND .5 < 1e3"},
    "tuple of clauses": {"when": (when_matched().delete(),)},
    "template for all": {"when": "{{ params.when }}", "source": "{{ params.source }}"},
    "template in a name": {"target": "shop.{{ params.x }}", "on": "t.id = {{ params.x }}.id"},
    "template in a table source": {"source": table_source("{{ params.x }}")},
    "template as a kind": {"source": {"kind": "{{ params.x }}"}},
    "template as an action": {"when": [{"when": "matched", "action": "{{ params.x }}"}]},
    "template as cardinality": {"cardinality": "{{ params.x }}"},
    "template as a number": {"target_file_size": "{{ params.x }}"},
    "conf of another task": {"conf": ResultOfAnotherTask()},
    "options of another task": {"source": file_source("/x", "csv", options=ResultOfAnotherTask())},  # type: ignore[arg-type]
    "sources of another task": {
        "source": sql_source("SELECT * FROM a", sources=ResultOfAnotherTask())  # type: ignore[arg-type]
    },
    "options of another task in a named source": {
        "source": sql_source(
            "SELECT * FROM a",
            sources={"a": file_source("/x", "csv", options=ResultOfAnotherTask())},  # type: ignore[arg-type]
        )
    },
    "template as an alias": {"target_alias": "{{ params.x }}"},
    "columns called like operators": {"on": "t.and = s.in AND NOT and OR or"},
    "type at the end": {"on": "t.a = s.a::ARRAY<MAP<STRING, INT>>"},
    "quotes in comments": {"on": "t.id = s.id -- it's (\n /* ' ( */ AND t.b = ')\\''"},
}


@pytest.mark.parametrize("change", LEGAL.values(), ids=LEGAL)
def test_never_rejected_at_parse(change: dict[str, Any]) -> None:
    MergeIntoOperator(**{**GOOD, **change})


def test_structure_is_checked_around_templates() -> None:
    with pytest.raises(RequestError, match=r"when\[1\]: clause 2"):
        MergeIntoOperator(
            **{**GOOD, "when": [when_matched().delete(), when_matched("{{ x }}").delete()]}
        )


TABLE: dict[str, Any] = {
    "task_id": "create",
    "target": "shop.orders",
    "columns": [column("id", "BIGINT")],
}
WRONG_TABLE = {
    "columns missing": ({"columns": None}, "columns: is None"),
    "target missing": ({"target": None}, "target: is None"),
    "text and parameters": (
        {"sql": "CREATE TABLE a.b (c INT)"},
        "target: cannot be combined with sql",
    ),
    "database of parts": ({"database": "shop"}, "database: belongs to sql"),
    "no columns": ({"columns": []}, "columns: is empty"),
    "no type": ({"columns": [{"name": "id"}]}, r"columns\[0\].type: missing"),
    "empty type": ({"columns": [column("id", "")]}, r"columns\[0\]: type: of column id is empty"),
    "unknown field": (
        {"columns": [{"name": "id", "type": "INT", "null": False}]},
        r"columns\[0\].null: unknown field",
    ),
    "partition key": ({"partition_keys": ["day"]}, "partition_keys: day is not a column"),
    "option": ({"table_options": {"bucket": -1}}, "table_options.bucket: expected a string"),
}


@pytest.mark.parametrize(("change", "message"), WRONG_TABLE.values(), ids=WRONG_TABLE)
def test_create_table_found_at_parse(change: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=f"^REQUEST_INVALID: task '[a-z]+': {message}"):
        CreateTableOperator(**{**TABLE, **change})


WRONG_TEXT = {
    "wrong": (
        {"sql": "CREATE TABLE a.b (c)"},
        "SYNTAX_ERROR: task 'create': sql: line 1, column 20: expected the",
    ),
    "other statement": (
        {"sql": "DROP TABLE a.b"},
        "SYNTAX_ERROR: task 'create': sql: line 1, column 1: expected",
    ),
    "refused": (
        {"sql": "CREATE TABLE a.b AS SELECT 1"},
        "NOT_SUPPORTED: task 'create': sql: line 1, column 18: AS is not supported here",
    ),
    "no database": (
        {"sql": "CREATE TABLE b (c INT)"},
        "REQUEST_INVALID: task 'create': sql: line 1, column 14",
    ),
}


@pytest.mark.parametrize(("parameters", "message"), WRONG_TEXT.values(), ids=WRONG_TEXT)
def test_create_table_as_text_found_at_parse(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(JobError, match=rf"^{message}"):
        CreateTableOperator(task_id="create", **parameters)


def test_create_table_as_text_and_in_parts() -> None:
    text = CreateTableOperator(
        task_id="create",
        sql="CREATE TABLE orders (id BIGINT NOT NULL, day DATE COMMENT 'of booking') "
        "PARTITIONED BY (day) TBLPROPERTIES ('bucket' = '4') COMMENT 'all'",
        database="shop",
    )
    parts = CreateTableOperator(
        task_id="create",
        target="shop.orders",
        columns=[
            column("id", "BIGINT", nullable=False),
            column("day", "DATE", comment="of booking"),
        ],
        partition_keys=["day"],
        table_options={"bucket": "4"},
        comment="all",
    )
    assert text.statement() == parts.statement()
    assert text.target_table() == parts.target_table()


def test_create_table_from_a_template_is_checked_when_it_is_rendered() -> None:
    operator = CreateTableOperator(task_id="create", sql="CREATE TABLE {{ params.table }} (a INT)")
    operator.sql = "CREATE TABLE a.b (a)"
    with pytest.raises(JobError, match="SYNTAX_ERROR: sql: line 1"):
        operator.check_request()


def test_create_table_has_no_outlet() -> None:
    operator = CreateTableOperator(
        **{**TABLE, "columns": [column("{{ params.a }}", "INT"), column("{{ params.b }}", "INT")]}
    )
    assert operator.outlets == []
