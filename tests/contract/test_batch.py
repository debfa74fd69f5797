"""A batch: which of its requests need which, and what is no batch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spark_jobs.contract.batch import JobBatch
from spark_jobs.contract.guards import Guards
from spark_jobs.contract.request import (
    CatalogSpec,
    JobRequest,
    SqlSource,
    TableName,
    TableSource,
)
from spark_jobs.contract.statements import DeleteSpec
from spark_jobs.errors import RequestError

LAKE = CatalogSpec("paimon", "/lake")


def request(operation_id: str, target: str, *sources: str) -> JobRequest:
    read = tuple(
        TableSource(f"s{index}", TableName("db", name)) for index, name in enumerate(sources)
    )
    return JobRequest(
        operation_id, TableName("db", target), LAKE, DeleteSpec("t"), (*read, SqlSource("q", "x"))
    )


def test_a_batch_comes_back() -> None:
    batch = JobBatch("batch", (request("one", "a"), request("two", "b")), 2, "continue")

    assert JobBatch.from_json(batch.to_json()) == batch


def test_what_needs_what() -> None:
    batch = JobBatch(
        "batch",
        (
            request("one", "a"),
            request("two", "b", "a"),
            request("three", "c"),
            request("four", "A"),
            request("five", "c$branch_main"),
        ),
    )

    needed = [sorted(each) for each in batch.needs()]
    assert needed == [[], [0], [], [0, 1], [2]]


def test_rows_for_other_tables_need_their_readers_and_changers() -> None:
    def audited(operation_id: str, target: str, *sources: str) -> JobRequest:
        return replace(request(operation_id, target, *sources), guards=Guards(audit_table="db.x"))

    batch = JobBatch(
        "batch",
        (
            audited("one", "a"),
            audited("two", "b"),
            request("three", "c", "X"),
            audited("four", "d"),
            request("five", "x"),
            audited("six", "e"),
        ),
    )

    needed = [sorted(each) for each in batch.needs()]
    assert needed == [[], [], [0, 1], [2], [0, 1, 2, 3], [2, 4]]


def test_tables_of_two_catalogs_are_two_tables() -> None:
    other = replace(request("two", "a"), catalog=CatalogSpec("paimon", "/other"))

    assert JobBatch("batch", (request("one", "a"), other)).needs()[1] == frozenset()


def test_tables_are_the_same_wherever_jobs_leave_their_files() -> None:
    other = replace(request("two", "a"), catalog=replace(LAKE, workspace="/scratch"))

    assert JobBatch("batch", (request("one", "a"), other)).needs()[1] == frozenset({0})


def test_a_catalog_that_alone_knows_the_places_of_tables() -> None:
    server = CatalogSpec("iceberg", "", {"uri": "http://server"}, "s3://lake/work")
    one, two = (replace(request(each, "a"), catalog=server) for each in ("one", "two"))

    assert JobBatch("batch", (one, two)).needs()[1] == frozenset({0})
    assert JobBatch("batch", (one, request("two", "a"))).needs()[1] == frozenset()


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"requests": ()}, "requests: there are none"),
        ({"requests": (request("a", "a"), request("a", "b"))}, "have the same operation_id"),
        ({"max_parallel": 0}, "max_parallel: must be positive"),
        ({"max_seconds": 0}, "max_seconds: must be positive"),
        ({"on_failure": "ignore"}, "on_failure: 'ignore' is not one of: stop, continue"),
    ],
)
def test_what_is_no_batch(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(RequestError, match=problem):
        JobBatch(**{"operation_id": "batch", "requests": (request("one", "a"),), **fields})


def test_each_catalog_gets_its_own_credentials() -> None:
    other = CatalogSpec("iceberg", "/other")
    both = JobBatch("batch", (request("one", "a"), replace(request("two", "b"), catalog=other)))
    found = both.all_credentials([{"key": "lake's"}, {"key": "other's", "token": "t"}])

    assert both.credentials_of(LAKE, found) == {"key": "lake's"}
    assert both.credentials_of(other, found) == {"key": "other's", "token": "t"}
    one = JobBatch("batch", (request("one", "a"), request("two", "b")))
    assert one.all_credentials([{"key": "lake's"}]) == {"key": "lake's"}
    assert one.credentials_of(LAKE, {"key": "lake's"}) == {"key": "lake's"}
