"""Commits of others while an INSERT OVERWRITE runs: in its partitions, and in others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from spark_jobs.contract.inserts import (
    InsertIntoSpec,
    InsertOverwriteSpec,
    PartitionStatement,
    TruncateTableSpec,
)
from spark_jobs.contract.request import Origin, SqlSource
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.errors import ErrorCode
from tests.conformance.behaviour import Behaviour
from tests.conformance.check import request_of
from tests.conformance.harness import Harness
from tests.conformance.tables import ORDERS, Row, order
from tests.engine.test_conflicts import Writes
from tests.support.insert_paths import INSERT_PATHS, InsertPath, forced_insert_path

SOURCE = "VALUES (1, 11, 'x', 3, 'r', 'a') AS s(id, k, v, n, req, p)"
FIVE = SqlSource("s", "SELECT * FROM VALUES (5, 11, 'x', 3, 'r', 'a') AS s(id, k, v, n, req, p)")
OTHERS = {row["id"] for row in ORDERS.rows if row["p"] != "a"}
DYNAMIC = InsertOverwriteSpec("s", "dynamic")
STATIC = InsertOverwriteSpec("s", "static", {"p": "'a'"})


MakeTable = Callable[..., Harness]


@pytest.fixture
def harness(make_table: MakeTable) -> Harness:
    return make_table("append-dv", ORDERS, partitioned=True)


def run(
    harness: Harness,
    statement: PartitionStatement,
    *,
    meanwhile: Sequence[Row] = (),
    reads_itself: bool = False,
    operation_id: str = "statement",
) -> JobResult:
    """Run a statement; after it began for the first time, somebody appends rows."""
    commits = [partial(harness.append, [row]) for row in meanwhile]
    connector = harness.open()
    racing = Writes(connector.writes, begun=lambda: commits.pop()() if commits else None)
    request = request_of(Behaviour("", SOURCE, (), statement=statement), harness)
    request = replace(request, operation_id=operation_id)
    if not reads_itself:
        request = replace(request, sources=request.sources[1:])
    return Job(request, harness.spark, replace(connector, writes=racing)).run()


def ids(harness: Harness) -> set[int]:
    return {row["id"] for row in harness.state().rows}


@pytest.mark.slow
@pytest.mark.parametrize("path", INSERT_PATHS)
@pytest.mark.parametrize("statement", [DYNAMIC, STATIC], ids=["dynamic", "static"])
def test_rows_in_the_same_partition_are_a_conflict_and_the_statement_runs_again(
    harness: Harness, statement: PartitionStatement, path: InsertPath
) -> None:
    with forced_insert_path(path) as tally:
        result = run(harness, statement, meanwhile=[order(999, "a")])
    assert tally == {path: 2}

    assert (result.status, result.metrics.attempts) == ("committed", 2)
    assert result.metrics.deleted == 31
    assert ids(harness) == {1, *OTHERS}
    after = harness.state()
    assert after.on_disk >= set(after.files)


@pytest.mark.slow
@pytest.mark.parametrize("path", INSERT_PATHS)
@pytest.mark.parametrize("statement", [DYNAMIC, STATIC], ids=["dynamic", "static"])
def test_rows_in_another_partition_stay(
    harness: Harness, statement: PartitionStatement, path: InsertPath
) -> None:
    with forced_insert_path(path) as tally:
        result = run(harness, statement, meanwhile=[order(999, "b")])
    assert tally == {path: 1}

    assert (result.status, result.metrics.attempts) == ("committed", 1)
    assert ids(harness) == {1, 999, *OTHERS}


@pytest.mark.slow
def test_a_statement_that_reads_the_table_depends_on_all_of_it(harness: Harness) -> None:
    result = run(harness, DYNAMIC, meanwhile=[order(999, "b")], reads_itself=True)

    assert (result.status, result.metrics.attempts) == ("committed", 2)
    assert ids(harness) == {1, 999, *OTHERS}


@pytest.mark.slow
def test_the_last_writer_wins_where_it_is_asked_to(harness: Harness) -> None:
    statement = replace(DYNAMIC, last_writer_wins=True)

    result = run(harness, statement, meanwhile=[order(999, "a")])

    assert (result.status, result.metrics.attempts) == ("committed", 1)
    assert (result.metrics.inserted, result.metrics.deleted) == (1, 31)
    assert ids(harness) == {1, *OTHERS}


@pytest.mark.slow
def test_the_last_writer_replaces_no_partition_that_nobody_expects(harness: Harness) -> None:
    """A partition that came meanwhile is among those to be replaced, but not expected."""
    run(harness, TruncateTableSpec(), operation_id="truncate")
    harness.append([order(1, "a")])
    statement = InsertOverwriteSpec(
        "s", "table", expected_partitions=({"p": "'a'"},), last_writer_wins=True
    )

    before = harness.state()

    result = run(harness, statement, meanwhile=[order(999, "b")])

    assert result.error is not None
    assert result.error.code == ErrorCode.PARTITION_NOT_EXPECTED.name
    assert ids(harness) == {1, 999}
    after = harness.state()
    assert after.on_disk - before.on_disk <= set(after.files)


@pytest.mark.slow
def test_the_last_writer_s_statement_is_done_once_though_two_drivers_run_it(
    harness: Harness,
) -> None:
    """The next try commits while the first still runs, then somebody's overwrite: it stays."""
    statement = replace(DYNAMIC, last_writer_wins=True)
    connector = harness.open()
    request = request_of(Behaviour("", SOURCE, (), statement=statement), harness)
    later = replace(request, operation_id="later", sources=(FIVE,))

    others = [replace(request, origin=Origin(try_number=2)), later]

    def commit() -> None:
        while others:
            result = Job(others.pop(0), harness.spark, harness.open()).run()
            assert result.status == "committed"

    class OthersFirst(Writes):
        def finish_merge(self, *arguments: Any) -> Any:
            commit()
            return super().finish_merge(*arguments)

    racing = OthersFirst(connector.writes)
    result = Job(request, harness.spark, replace(connector, writes=racing)).run()

    assert result.error is not None
    assert result.error.code == ErrorCode.RUN_GIVEN_UP.name
    assert ids(harness) == {5, *OTHERS}


@pytest.mark.slow
def test_clearing_the_table_conflicts_with_any_commit(harness: Harness) -> None:
    result = run(harness, TruncateTableSpec(), meanwhile=[order(999, "z")])

    assert (result.status, result.metrics.attempts) == ("committed", 2)
    assert ids(harness) == set()


@pytest.mark.slow
def test_insert_into_conflicts_with_nothing(harness: Harness) -> None:
    result = run(harness, InsertIntoSpec("s"), meanwhile=[order(999, "a")])

    assert (result.status, result.metrics.attempts) == ("committed", 1)
    assert ids(harness) == {1, 999, *(row["id"] for row in ORDERS.rows)}
