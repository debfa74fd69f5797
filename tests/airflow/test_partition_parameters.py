"""Parameters of the operators that replace or clear partitions: statements, and what is refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from airflow_provider_merge.operators.drop_partitions import DropPartitionsOperator
from airflow_provider_merge.operators.insert_into import InsertIntoOperator
from airflow_provider_merge.operators.insert_overwrite import InsertOverwriteOperator
from airflow_provider_merge.operators.sources import file_source, table_source
from airflow_provider_merge.operators.truncate_table import TruncateTableOperator
from spark_jobs.contract.inserts import (
    DropPartitionsSpec,
    InsertIntoSpec,
    InsertOverwriteSpec,
    TruncateTableSpec,
)
from spark_jobs.contract.request import TableName, TableSource
from spark_jobs.errors import JobError, RequestError

SOURCE = "insert_source"
PARTS: dict[str, Any] = {
    "task_id": "task",
    "target": "shop.daily",
    "source": table_source("shop.landing"),
}
TEXT = {"task_id": "task", "sql": "INSERT OVERWRITE shop.daily PARTITION (day = 1) SELECT 1"}
WHOLE = {"task_id": "task", "sql": "INSERT OVERWRITE shop.daily SELECT 1"}


def overwrite(**parameters: Any) -> InsertOverwriteSpec:
    return InsertOverwriteOperator(**parameters).statement()


def test_parts_become_the_statement() -> None:
    operator = InsertOverwriteOperator(
        **PARTS,
        mode="static",
        partition={"day": dt.date(2026, 1, 31), "n": 7, "price": Decimal("1.50"), "x": None},
        columns=["a", "b"],
        order_by=["a DESC"],
        expected_partitions=[{"day": "it's"}, {"flag": True}],
        last_writer_wins="True",
    )
    assert operator.statement() == InsertOverwriteSpec(
        SOURCE,
        "static",
        {"day": "'2026-01-31'", "n": "'7'", "price": "'1.50'", "x": "NULL"},
        ("a", "b"),
        order_by=("a DESC",),
        expected_partitions=({"day": r"'it\'s'"}, {"flag": "'true'"}),
        last_writer_wins=True,
    )
    assert operator.request_sources() == (TableSource(SOURCE, TableName("shop", "landing")),)
    assert operator.target_table() == TableName("shop", "daily")


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        (TEXT, "static"),
        (TEXT, "dynamic"),
        (WHOLE, "table"),
        (WHOLE, "dynamic"),
    ],
)
def test_the_mode_of_a_text(text: dict[str, str], mode: str) -> None:
    assert overwrite(**text, mode=mode).mode == mode


@pytest.mark.parametrize("partition", ["", "PARTITION (day)"])
def test_only_mode_table_replaces_the_whole_table(partition: str) -> None:
    text = f"INSERT OVERWRITE shop.daily {partition} SELECT 1"
    message = (
        "^REQUEST_INVALID: task 'task': sql: partition: mode static needs the partition that is"
    )
    with pytest.raises(RequestError, match=message):
        InsertOverwriteOperator(task_id="task", sql=text, mode="static", driver_memory="{{ x }}")


@pytest.mark.parametrize(("field", "rendered"), [("mode", "static"), ("sql", WHOLE["sql"])])
def test_the_rendered_mode_and_text_have_to_fit(field: str, rendered: str) -> None:
    parameters: dict[str, Any] = {**WHOLE, "mode": "static", field: "{{ params.x }}"}
    operator = InsertOverwriteOperator(**parameters)
    setattr(operator, field, rendered)
    with pytest.raises(RequestError, match="sql: partition: mode static needs"):
        operator.statement()


SET = "SET spark.sql.sources.partitionOverwriteMode = {}; "


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        (SET.format("DYNAMIC") + WHOLE["sql"], "dynamic"),
        (SET.format("STATIC") + WHOLE["sql"], "table"),
        (SET.format("STATIC") + TEXT["sql"], "static"),
    ],
)
def test_the_mode_that_a_text_sets(text: str, mode: str) -> None:
    assert overwrite(task_id="t", sql=text, mode=mode).mode == mode


@pytest.mark.parametrize(
    ("policy", "mode", "remedy"),
    [
        ("DYNAMIC", "table", "mode='dynamic'"),
        ("DYNAMIC", "static", "mode='dynamic'"),
        ("STATIC", "dynamic", "mode='static' or 'table'"),
    ],
)
def test_another_mode_than_a_text_sets(policy: str, mode: str, remedy: str) -> None:
    problem = f"mode: is '{mode}', but the text asks for a {policy.lower()} over"
    with pytest.raises(RequestError, match=f"^REQUEST_INVALID: task 't': {problem}") as caught:
        overwrite(task_id="t", sql=SET.format(policy) + WHOLE["sql"], mode=mode)
    assert remedy in caught.value.remedy


def test_guards_stand_beside_a_text() -> None:
    spec = overwrite(
        **WHOLE, mode="table", allow_empty=True, expected_partitions=[{"day": "x"}], order_by=["a"]
    )
    assert (spec.allow_empty, spec.expected_partitions, spec.order_by) == (
        True,
        ({"day": "'x'"},),
        ("a",),
    )


def test_insert_into() -> None:
    operator = InsertIntoOperator(**PARTS, by_name=True, partition={"day": "{{ ds }}"})
    operator.partition = {"day": "2026-01-31"}
    assert operator.statement() == InsertIntoSpec(SOURCE, {"day": "'2026-01-31'"}, by_name=True)


def test_truncate_and_drop() -> None:
    truncate = TruncateTableOperator(task_id="task", target="shop.daily", partition={"day": "1"})
    drop = DropPartitionsOperator(
        task_id="task", target="shop.daily", partitions=[{"day": 1}, {"day": 2}], if_exists=True
    )
    text = DropPartitionsOperator(
        task_id="task",
        sql="ALTER TABLE shop.daily DROP PARTITION (day = 1)",
        last_writer_wins=True,
    )
    assert truncate.statement() == TruncateTableSpec({"day": "'1'"})
    assert drop.statement() == DropPartitionsSpec(({"day": "'1'"}, {"day": "'2'"}), if_exists=True)
    assert text.statement() == DropPartitionsSpec(({"day": "1"},), last_writer_wins=True)


STATIC = {**PARTS, "mode": "static", "partition": {"day": "1"}}
DYNAMIC = {**PARTS, "mode": "dynamic"}
WRONG = {
    "unknown mode": ({**PARTS, "mode": "append"}, "mode: 'append' is not one of: dynamic, static"),
    "unknown mode of a text": ({**TEXT, "mode": ""}, "mode: is empty"),
    "no target": ({"task_id": "t", "mode": "table", "source": PARTS["source"]}, "target: missing"),
    "no source": ({"task_id": "t", "mode": "table", "target": "a.b"}, "source: missing"),
    "source": ({**DYNAMIC, "source": file_source("", "csv")}, "source.path: is empty"),
    "static without a partition": ({**PARTS, "mode": "static"}, "partition: mode static needs"),
    "table with a partition": ({**STATIC, "mode": "table"}, "partition: mode table replaces the"),
    "partition no dict": ({**STATIC, "partition": "day=1"}, "partition: expected a dict of part"),
    "partition value": (
        {**STATIC, "partition": {"day": [1]}},
        "partition.day: list is not a partition value",
    ),
    "partition value 1.5": ({**STATIC, "partition": {"day": 1.5}}, "partition.day: float is no"),
    "partition value empty": ({**STATIC, "partition": {"day": " "}}, "partition.day: is empty"),
    "partition twice": ({**STATIC, "partition": {"a": 1, "A": 2}}, "partition: A occurs more tha"),
    "expected no list": (
        {**DYNAMIC, "expected_partitions": {"day": 1}},
        "expected_partitions: expected a list of partitions, found dict",
    ),
    "expected none": ({**DYNAMIC, "expected_partitions": []}, "expected_partitions: is empty"),
    "expected no dict": (
        {**DYNAMIC, "expected_partitions": ["2026-01-31"]},
        r"expected_partitions\[0\]: expected a dict",
    ),
    "expected nothing": (
        {**DYNAMIC, "expected_partitions": [{"day": 1}, {}]},
        r"expected_partitions\[1\]: is empty",
    ),
    "expected value": (
        {**DYNAMIC, "expected_partitions": [{"day": ""}]},
        r"expected_partitions\[0\].day: is empty",
    ),
    "allow_empty elsewhere": ({**DYNAMIC, "allow_empty": True}, "allow_empty: belongs to mode tab"),
    "allow_empty": ({**DYNAMIC, "allow_empty": "yes"}, "allow_empty: 'yes' is neither true nor"),
    "columns": ({**DYNAMIC, "columns": "a, b"}, "columns: expected a list of names"),
    "columns by name": ({**DYNAMIC, "columns": ["a"], "by_name": True}, "columns: BY NAME takes"),
    "order_by": ({**DYNAMIC, "order_by": [""]}, r"order_by\[0\]: is empty"),
    "sources": ({**DYNAMIC, "sources": {}}, "sources: belongs to sql"),
    "both": (
        {**TEXT, "mode": "static", "partition": {"a": 1}},
        "partition: cannot be combined with",
    ),
    "table with a partition in the text": (
        {**TEXT, "mode": "table"},
        "sql: partition: mode table replaces the whole table",
    ),
    "another statement": (
        {"task_id": "t", "mode": "table", "sql": "TRUNCATE TABLE a.b"},
        "sql: is a statement of the kind TRUNCATE_TABLE, not INSERT_OVERWRITE",
    ),
}


@pytest.mark.parametrize(("parameters", "message"), WRONG.values(), ids=WRONG)
def test_found_at_parse(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=f"^REQUEST_INVALID: task '[a-z]+': {message}"):
        InsertOverwriteOperator(**parameters)


def test_wrong_clearing_is_found_at_parse() -> None:
    table: dict[str, Any] = {"task_id": "task", "target": "shop.daily"}
    with pytest.raises(RequestError, match="partition: is empty"):
        TruncateTableOperator(**table, partition={})
    with pytest.raises(RequestError, match="partitions: missing"):
        DropPartitionsOperator(**table)
    with pytest.raises(RequestError, match="partitions: is empty"):
        DropPartitionsOperator(**table, partitions=[])
    with pytest.raises(RequestError, match=r"partitions\[0\]: is empty"):
        DropPartitionsOperator(**table, partitions=[{}])
    with pytest.raises(RequestError, match="sources: is of no use"):
        TruncateTableOperator(**table, sources={"a": table_source("a.b")})


TEMPLATES = {
    "mode": {**PARTS, "mode": "{{ params.mode }}", "partition": {"day": "{{ ds }}"}},
    "partition": {**PARTS, "mode": "static", "partition": "{{ params.partition }}"},
    "expected": {**DYNAMIC, "expected_partitions": "{{ params.x }}", "allow_empty": "{{ x }}"},
    "source": {**DYNAMIC, "source": file_source("/landing/{{ ds }}", "parquet")},
    "text": {"task_id": "t", "mode": "dynamic", "sql": "INSERT OVERWRITE {{ x }} SELECT 1"},
}


@pytest.mark.parametrize("parameters", TEMPLATES.values(), ids=TEMPLATES)
def test_never_rejected_at_parse(parameters: dict[str, Any]) -> None:
    InsertOverwriteOperator(**parameters)


def test_a_rendered_template_is_checked() -> None:
    operator = InsertOverwriteOperator(**PARTS, mode="static", partition={"day": "{{ ds }}"})
    operator.partition = {"day": ""}
    with pytest.raises(JobError, match=r"partition\.day: is empty"):
        operator.statement()
