"""``deduplicate``: what it asks of the job, and wrong ones, found before Spark starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_provider_merge.checks.requests import MetadataCheck
from airflow_provider_merge.hooks.paimon import PaimonHook
from airflow_provider_merge.lineage.columns import Relations
from airflow_provider_merge.operators.insert_into import InsertIntoOperator
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.query import QueryOperator
from airflow_provider_merge.operators.sources import (
    deduplicate,
    file_source,
    sql_source,
    table_source,
)
from airflow_provider_merge.operators.statement_list import sql_statement
from airflow_provider_merge.operators.statements import StatementsOperator
from spark_jobs.contract.deduplication import DeduplicatedSource
from spark_jobs.contract.request import FileSource, SqlSource, TableName, TableSource
from spark_jobs.contract.source_names import source_text
from spark_jobs.contract.statements import UpdateAllAction
from spark_jobs.errors import JobError
from tests.support.paimon_metadata import TableFiles

_FEED = table_source("shop.feed")
_TEXT = "MERGE INTO shop.orders t USING feed s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"


def _merge(source: Any, **more: Any) -> MergeIntoOperator:
    return MergeIntoOperator(task_id="t", sql=_TEXT, sources={"feed": source}, **more)


def test_a_named_source_stands_behind_its_rows() -> None:
    files = file_source("/landing", "parquet")
    operator = _merge(deduplicate(files, by=["id", "`Day`"], order_by=["at"], tie="any"))

    assert operator.request_sources() == (
        FileSource("feed_before_deduplication", "/landing", "parquet"),
        DeduplicatedSource("feed", "feed_before_deduplication", ("id", "Day"), ("at",), "any"),
    )
    operator.check_request()


def test_a_query_keeps_its_sources() -> None:
    query = sql_source("SELECT * FROM new WHERE ok", sources={"new": _FEED})
    operator = InsertIntoOperator(
        task_id="t", target="shop.orders", source=deduplicate(query, by=["id"])
    )

    *inner, last = operator.request_sources()
    assert inner == [
        TableSource("new", TableName("shop", "feed")),
        SqlSource("insert_source_before_deduplication", "SELECT * FROM new WHERE ok"),
    ]
    assert last == DeduplicatedSource(
        "insert_source", "insert_source_before_deduplication", ("id",), (), "fail"
    )
    assert (source_text(inner[1]), source_text(last)) == ("the source", "the source")
    assert [each.uri for each in operator.inlets] == ["lakehouse://paimon_default/shop/feed"]


def test_it_belongs_to_lists_and_queries_and_may_be_nested() -> None:
    twice = deduplicate(deduplicate(_FEED, by=["id", "at"], tie="any"), by=["id"], order_by=["at"])
    StatementsOperator(
        task_id="s", statements=[sql_statement("one", _TEXT, sources={"feed": twice})]
    )
    QueryOperator(task_id="q", sql="SELECT count(*) AS n FROM feed", sources={"feed": twice})
    names = [each.name for each in _merge(twice).request_sources()]
    assert names == [
        "feed_before_deduplication_before_deduplication",
        "feed_before_deduplication",
        "feed",
    ]


def test_a_source_that_only_it_reads_is_read() -> None:
    query = sql_source("SELECT * FROM days JOIN raw USING (day)", sources={"raw": _FEED})
    sources = {"feed": deduplicate(query, by=["id"], order_by=["at"]), "days": _FEED}
    operator = MergeIntoOperator(task_id="t", sql=_TEXT, sources=sources)
    assert operator.request_sources()[-1].name == "days"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (deduplicate(_FEED, by=[]), "sources.feed: by: is empty"),
        (deduplicate(_FEED, by="id"), "sources.feed.by: expected a list of columns, found 'id'"),
        (deduplicate(_FEED, by=[7]), "sources.feed.by: expected a list of columns"),  # type: ignore[list-item]
        (deduplicate(_FEED, by=[" "]), r"sources.feed: by\[0\]: is empty"),
        (deduplicate(_FEED, by=["id"], order_by=["at DESC"]), "order_by.* has a direction.*query"),
        (deduplicate(_FEED, by=["id"], order_by=["ID"]), "order_by: id occurs more than once"),
        (deduplicate(_FEED, by=["id"], tie="last"), "tie: 'last' is not one of: fail, any"),
        (deduplicate(_FEED, by=["id"], order_by=None), "sources.feed.order_by: is None"),  # type: ignore[arg-type]
        ({**deduplicate(_FEED, by=["id"]), "keep": 1}, "sources.feed.keep: unknown field"),
        ({"kind": "deduplicated", "by": ["id"]}, "sources.feed.source: expected a source"),
        (deduplicate({"kind": "file"}, by=["id"]), "sources.feed.source.path: missing"),
    ],
)
def test_wrong_ones_are_named_when_the_dag_is_parsed(source: Any, message: str) -> None:
    with pytest.raises(JobError, match=message):
        _merge(source)


@pytest.mark.parametrize("field", ["path", "by", "order_by", "tie", "column"])
def test_templates_stand_anywhere(field: str) -> None:
    later = "{{ params.x }}"
    columns = [later] if field == "column" else ["id"]
    source: Any = deduplicate(
        file_source(later if field == "path" else "/landing", "parquet"),
        by=later if field == "by" else columns,
        order_by=later if field == "order_by" else ["at"],
        tie=later if field == "tie" else "fail",
    )
    _merge(source)


def test_columns_are_looked_up_before_spark_starts(warehouse: Path) -> None:
    TableFiles(warehouse, "feed", more_columns={"at": "INT"}).create()
    check = MetadataCheck(PaimonHook("paimon_default"), shares_files=True)
    fine = _merge(deduplicate(_FEED, by=["ID"], order_by=["at"])).request_sources()

    assert check.require_sources(fine)["feed"].find("at") == ["at"]
    wrong = _merge(deduplicate(_FEED, by=["id"], order_by=["att"])).request_sources()
    with pytest.raises(JobError, match=r"att is not a column of source feed.*Did you mean at"):
        check.require_sources(wrong)


def test_lineage_goes_through_it() -> None:
    sources = _merge(deduplicate(_FEED, by=["id"])).request_sources()
    assert Relations(sources).queries() == {"feed": "SELECT * FROM feed_before_deduplication"}


def test_clauses_stay_what_they_are() -> None:
    (case,) = _merge(deduplicate(_FEED, by=["id"])).statement().cases
    assert isinstance(case.action, UpdateAllAction)
