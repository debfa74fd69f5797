"""A commit that another writer was faster with, and writes that break off."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import pytest

from spark_jobs.contract.inserts import InsertOverwriteSpec
from spark_jobs.contract.properties import recorded_metrics
from spark_jobs.contract.request import TableName, TableSource
from spark_jobs.contract.statements import MergeSpec
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.runtime.back_off import ATTEMPTS
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.run import summary
from spark_jobs.spi.sinks import MergeHandle
from spark_jobs.spi.tables import TableHandle
from spark_jobs.spi.writes import MergeWrite
from tests.conformance.behaviour import Behaviour, insert, matched, not_matched, update
from tests.conformance.check import OPERATION_ID, request_of
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import ORDERS, order
from tests.engine.slow_sink import SlowSinks

STATEMENT = Behaviour(
    "",
    "VALUES (101, 1), (222, 1), (143, 1), (1, 1) AS s(id, n)",
    (matched(update(n="t.n / s.n")), not_matched(insert(id="s.id", req="'r'", p="'a'"))),
)


@dataclass(frozen=True)
class Writes:
    """The writes of a harness' connector, around whose begin and finish something happens."""

    real: Any
    beginning: Callable[[], None] = lambda: None
    begun: Callable[[], None] = lambda: None
    finished: Callable[[], None] = lambda: None
    wrapped: Callable[[Any], Any] = lambda sinks: sinks
    aborting: Callable[[], None] = lambda: None

    def begin_merge(self, table: TableHandle, write: MergeWrite) -> MergeHandle:
        self.beginning()
        handle: MergeHandle = self.real.begin_merge(table, write)
        self.begun()
        return replace(handle, sinks=self.wrapped(handle.sinks))

    def finish_merge(self, *arguments: Any) -> Any:
        snapshot = self.real.finish_merge(*arguments)
        self.finished()
        return snapshot

    def abort_merge(self, *arguments: Any) -> None:
        self.aborting()
        self.real.abort_merge(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


@pytest.fixture
def harness(make_table: Callable[..., Harness]) -> Harness:
    return make_table("folder", ORDERS, partitioned=True)


@pytest.mark.slow
@pytest.mark.parametrize("conflicts", [1, ATTEMPTS])
def test_a_conflict_makes_the_statement_run_again_on_the_new_table(
    harness: Harness, conflicts: int, caplog: pytest.LogCaptureFixture
) -> None:
    connector = harness.open()
    others = iter([[order(990 + number, "a")] for number in range(conflicts)])
    racing = Writes(connector.writes, begun=lambda: list(map(harness.append, islice(others, 1))))

    with caplog.at_level("INFO"):
        result = Job(
            request_of(STATEMENT, harness), harness.spark, replace(connector, writes=racing)
        ).run()

    after = harness.state()
    assert after.operations == {f"{OPERATION_ID}.json"}
    told = [each for each in caplog.records if "conflict in attempt " in each.getMessage()]
    assert f"conflict in attempt 1 of {ATTEMPTS}: " in told[0].getMessage()
    assert {each.levelname for each in told} == {"WARNING"}
    if conflicts < ATTEMPTS:
        assert result.error is None
        assert (result.metrics.attempts, result.metrics.inserted) == (conflicts + 1, 1)
        assert summary(result).endswith(f", in attempt {conflicts + 1}")
        assert len(after.rows) == len(ORDERS.rows) + conflicts + 1
    else:
        assert result.error is not None
        assert (result.error.code, result.error.retryable) == ("COMMIT_CONFLICT", True)
        assert after.on_disk == set(after.files)
        assert len(after.rows) == len(ORDERS.rows) + conflicts


@pytest.mark.slow
@pytest.mark.parametrize("statement", ["merge", "overwrite"])
def test_commits_that_are_no_conflict_are_counted(
    make_table: Callable[..., Harness], statement: str
) -> None:
    harness = make_table("append-cow", ORDERS, partitioned=True)
    connector = harness.open()
    others = iter([[order(990, "b")], [order(991, "b")]])
    racing = Writes(connector.writes, begun=lambda: list(map(harness.append, others)))
    update_a = Behaviour(
        "", "VALUES (101) AS s(id)", (matched(update(n="7")),), on="t.id = s.id AND p = 'a'"
    )
    behaviour = update_a if statement == "merge" else overwrite_of_partition_a()
    # The table is among the sources of an overwrite, though no row of it is read.
    request = request_of(behaviour, harness, isolation="snapshot")

    result = Job(request, harness.spark, replace(connector, writes=racing)).run()

    assert result.error is None, result.error
    metrics = result.metrics
    assert (metrics.attempts, metrics.publish_attempts, metrics.snapshots_met) == (1, 1, 2)
    found = connector.writes.find_commit(connector.metadata.load_table(TARGET), OPERATION_ID)
    assert recorded_metrics(found.properties).snapshots_met == 2


def overwrite_of_partition_a() -> Behaviour:
    rows = "(SELECT 1 AS id, 1 AS k, 'v' AS v, 1 AS n, 'r' AS req) AS s"
    statement = InsertOverwriteSpec("s", "static", {"p": "'a'"})
    return Behaviour("", rows, (), statement=statement)


@pytest.mark.slow
def test_an_unknown_outcome_keeps_the_files_and_a_later_try_finds_the_snapshot(
    harness: Harness,
) -> None:
    def connection_lost() -> None:
        raise CommitError(ErrorCode.COMMIT_OUTCOME_UNKNOWN, "connection lost")

    connector = harness.open()
    lost = replace(connector, writes=Writes(connector.writes, finished=connection_lost))
    request = request_of(STATEMENT, harness)

    first = Job(request, harness.spark, lost).run()
    published = harness.state()
    origin = replace(request.origin, try_number=2)
    second = Job(replace(request, origin=origin), harness.spark, harness.open()).run()

    assert first.error is not None
    assert (first.error.code, first.error.retryable) == ("COMMIT_OUTCOME_UNKNOWN", True)
    assert (second.status, second.new_snapshot_id) == ("committed", published.snapshot_id)
    assert (second.metrics.updated, second.metrics.inserted) == (3, 1)
    assert harness.state().files == published.files


@pytest.mark.slow
def test_files_of_tasks_that_ended_well_are_removed_when_another_fails(harness: Harness) -> None:
    failing = replace(STATEMENT, source="VALUES (101, 1), (222, 1), (143, 0), (1, 1) AS s(id, n)")
    before = harness.state()

    result = Job(request_of(failing, harness), harness.spark, harness.open()).run()

    assert result.status == "failed"
    after = harness.state()
    assert (after.files, after.on_disk) == (before.files, before.on_disk)
    assert after.operations == {f"{OPERATION_ID}.json"}


@pytest.mark.slow
def test_files_of_tasks_that_outlive_the_failure_are_removed(harness: Harness) -> None:
    statement = Behaviour(
        "",
        # By the hash of its file, the first row goes to the first task, the others to the second.
        "VALUES (208, NULL), (143, 'x'), (308, 'x') AS s(id, r)",
        (matched(update(req="s.r")),),
    )
    connector = harness.open()
    slow = replace(connector, writes=Writes(connector.writes, wrapped=partial(SlowSinks, 1.5)))
    before = harness.state()

    result = Job(request_of(statement, harness), harness.spark, slow).run()
    time.sleep(3)

    assert result.error is not None
    assert result.error.code == "NOT_NULL_VIOLATION"
    assert harness.state().on_disk == before.on_disk


def storage_fails() -> None:
    raise OSError("the storage is away")


@pytest.mark.slow
def test_a_clean_up_that_fails_does_not_hide_why_the_statement_failed(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    failing = replace(STATEMENT, source="VALUES (101, 1), (143, 0) AS s(id, n)")
    connector = harness.open()
    writes = Writes(connector.writes, aborting=storage_fails)

    with caplog.at_level("INFO"):
        result = Job(
            request_of(failing, harness), harness.spark, replace(connector, writes=writes)
        ).run()

    assert result.error is not None
    assert (result.error.code, result.error.retryable) == ("EXPRESSION_FAILED", False)
    assert "cleaning up failed, so files may be left: the storage is away" in caplog.text


@pytest.mark.slow
def test_a_conflict_whose_clean_up_fails_makes_the_statement_run_again(harness: Harness) -> None:
    connector = harness.open()
    others = iter([[order(990, "a")]])
    writes = Writes(
        connector.writes,
        begun=lambda: list(map(harness.append, others)),
        aborting=storage_fails,
    )

    result = Job(
        request_of(STATEMENT, harness), harness.spark, replace(connector, writes=writes)
    ).run()

    assert result.error is None
    assert (result.metrics.attempts, result.metrics.inserted) == (2, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", [TARGET.table.upper(), f"{TARGET.table}$branch_main"])
def test_a_source_that_is_the_target_by_another_name(
    make_table: Callable[..., Harness], name: str
) -> None:
    """Every row of the table makes a new one; one of another partition comes meanwhile."""
    harness = make_table("append-cow", ORDERS, partitioned=True)
    others = iter([[order(999, "z")]])
    connector = harness.open()
    writes = Writes(connector.writes, begun=lambda: list(map(harness.append, others)))
    copying = Behaviour("", "", (not_matched(insert(id="-s.id", req="'r'", p="'q'")),))
    request = request_of(copying, harness)
    assert isinstance(request.statement, MergeSpec)
    source = TableSource(request.statement.source, TableName(TARGET.database, name))
    statement = replace(request.statement, on="t.id = -s.id AND t.p = 'q'")
    request = replace(request, sources=(source,), statement=statement)

    result = Job(request, harness.spark, replace(connector, writes=writes)).run()

    assert result.error is None
    assert (result.metrics.attempts, result.metrics.inserted) == (2, len(ORDERS.rows) + 1)
