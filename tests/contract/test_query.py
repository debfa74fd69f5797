"""Queries: what the contract refuses, and a request without a target."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from spark_jobs.contract.batch import JobBatch
from spark_jobs.contract.query import QueryColumn, QueryReport, QuerySpec
from spark_jobs.contract.request import CatalogSpec, JobRequest, SqlSource, TableName, TableSource
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import DeleteSpec
from spark_jobs.errors import RequestError

ORDERS = TableName("shop", "orders")
QUERY = JobRequest(
    "op",
    None,
    CatalogSpec("paimon", "/w"),
    QuerySpec("query"),
    (TableSource("orders", ORDERS), SqlSource("query", "SELECT * FROM orders")),
)
DELETE = JobRequest("delete", ORDERS, QUERY.catalog, DeleteSpec("t"))


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"limit": 0}, "limit: 0 is not between 1 and 10,000"),
        ({"limit": 10_001}, "limit: 10001 is not"),
        ({"output_format": "orc"}, "output_format: 'orc' is not one of: parquet, csv"),
        ({"output_path": "out"}, "output_path: 'out' is not an absolute path"),
        ({"output_path": "gs://b/out"}, "output_path: jobs cannot write to gs://"),
        ({"source": " "}, "source: is empty"),
    ],
)
def test_a_query_that_is_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(RequestError) as caught:
        QuerySpec(**{"source": "query", **fields})
    assert caught.value.message.startswith(problem)


@pytest.mark.parametrize(
    ("request_", "changes", "problem"),
    [
        (QUERY, {"target": ORDERS}, "target: a query has none"),
        (DELETE, {"target": None}, "target: a query has none, every other statement one"),
        (QUERY, {"dry_run": True}, "dry_run: a query has none"),
        (QUERY, {"sources": ()}, "statement.source: 'query' is not among"),
    ],
)
def test_a_request_that_is_refused(
    request_: JobRequest, changes: dict[str, Any], problem: str
) -> None:
    with pytest.raises(RequestError) as caught:
        dataclasses.replace(request_, **changes)
    assert caught.value.message.startswith(problem)


def test_a_query_waits_for_those_who_write_what_it_reads() -> None:
    other = dataclasses.replace(DELETE, operation_id="other", target=TableName("shop", "other"))
    batch = JobBatch("batch", (DELETE, other, QUERY))
    assert batch.needs()[2] == {0}
    queries = JobBatch("batch", (QUERY, dataclasses.replace(QUERY, operation_id="op-2")))
    assert queries.needs()[1] == set()


def test_rows_are_any_json_and_nothing_else() -> None:
    report = QueryReport((QueryColumn("a", "int"),), 1, ((1, [None, {"b": 1.5}], "x"),))
    result = JobResult("op", "unchanged", "", "digest", query=report)
    text = result.to_json()
    assert JobResult.from_json(text) == result
    with pytest.raises(RequestError, match=r"query\.rows\[0\]\[1\]\[1\]\.b: occurs more than once"):
        JobResult.from_json(text.replace('"b": 1.5', '"b": 1.5, "b": 2'))
    broken = json.loads(text)
    broken["query"]["rows"][0][2] = "\ud800"
    with pytest.raises(RequestError, match=r"query\.rows\[0\]\[2\]: .* is not Unicode text"):
        JobResult.from_json(json.dumps(broken))
