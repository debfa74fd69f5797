"""A dry run foretells the real run, and leaves the warehouse as it was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from spark_jobs.contract.inserts import DropPartitionsSpec, InsertIntoSpec, InsertOverwriteSpec
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.errors import ErrorCode
from tests.conformance.behaviour import (
    Behaviour,
    delete,
    delete_from,
    fails,
    insert_all,
    matched,
    not_matched,
    update,
    update_all,
    update_set,
)
from tests.conformance.check import check, request_of
from tests.conformance.conftest import MakeTable
from tests.conformance.connectors import PLANS
from tests.conformance.harness import Harness
from tests.conformance.tables import ORDERS, ORDERS_WITHOUT_NULL
from tests.support.forced_plans import forced_plan

_ALL = "s(id, k, v, n, req, p)"
_ROWS = f"VALUES (1, 11, 'x', 3, 'r', 'a'), (100, 12, NULL, 4, 'r', 'z') AS {_ALL}"
_NULL = f"VALUES (1, 11, 'x', 3, CAST(NULL AS STRING), 'a') AS {_ALL}"
_TWICE = f"VALUES (100, 1, 'x', 3, 'r', 'a'), (100, 2, 'y', 3, 'r', 'a') AS {_ALL}"

STATEMENTS = [
    Behaviour("merge", _ROWS, (matched(update_all()), not_matched(insert_all()))),
    Behaviour("merge that deletes", _ROWS, (matched(delete()),)),
    Behaviour("merge that changes nothing", _ROWS, (matched(update(n="1"), "t.id < 0"),)),
    delete_from("delete", "n = 1"),
    delete_from("delete of partitions", "p = 'a'"),
    update_set("update", {"n": "n + 1"}, "id IN (SELECT id FROM s)", _ROWS),
    Behaviour("insert", _ROWS, (), statement=InsertIntoSpec("s")),
    Behaviour("overwrite", _ROWS, (), statement=InsertOverwriteSpec("s", "dynamic")),
    Behaviour("drop", _ROWS, (), statement=DropPartitionsSpec(({"p": "'a'"},))),
]
FAILING = [
    Behaviour(
        "merge twice",
        _TWICE,
        (matched(update_all()),),
        fails=fails(ErrorCode.MERGE_TARGET_ROW_MULTIPLE_MATCHES),
    ),
    Behaviour(
        "insert of NULL",
        _NULL,
        (),
        statement=InsertIntoSpec("s"),
        fails=fails(ErrorCode.NOT_NULL_VIOLATION, "req"),
    ),
]


def listing(root: Path) -> dict[str, tuple[int, int, bytes]]:
    """Everything below a folder, folders too: inode, time of the last change, content."""
    found = {}
    for path in sorted(root.rglob("*")):
        status = path.stat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(root))] = (status.st_ino, status.st_mtime_ns, content)
    return found


def run(behaviour: Behaviour, harness: Harness, *, dry_run: bool) -> JobResult:
    request = replace(request_of(behaviour, harness), dry_run=dry_run)
    return Job(request, harness.spark, harness.open()).run()


def counts(result: JobResult) -> object:
    """What both runs tell alike: a dry run publishes nothing."""
    metrics = replace(result.metrics, seconds={}, publish_attempts=0, snapshots_met=0)
    return metrics, result.partitions, result.base_snapshot_id


def check_partitions(result: JobResult) -> None:
    """What would change by partition adds up to what would change at all."""
    assert tuple(each.name for each in result.partition_metrics) == result.partitions
    for name in ("inserted", "updated", "deleted", "files_added", "files_removed"):
        found = sum(getattr(each, name) for each in result.partition_metrics)
        assert found == getattr(result.metrics, name)


def _cases() -> Iterator[object]:
    for behaviour in STATEMENTS:
        for connector in ("append-cow", "append-dv", "folder"):
            if behaviour is STATEMENTS[0] or connector != "folder":
                yield pytest.param(behaviour, connector, id=f"{behaviour}-{connector}")


@pytest.mark.by_turns(2)
@pytest.mark.slow
@pytest.mark.parametrize(("behaviour", "connector"), list(_cases()))
def test_a_dry_run_has_the_counts_of_the_real_run(
    behaviour: Behaviour, connector: str, make_table: MakeTable
) -> None:
    harness = make_table(connector, ORDERS, partitioned=True)
    before = listing(harness.warehouse)

    dry = run(behaviour, harness, dry_run=True)

    assert (dry.status, dry.error, dry.new_snapshot_id) == ("dry_run", None, None)
    assert listing(harness.warehouse) == before
    # The operation's id is the same: a dry run is never taken for the work itself.
    real = run(behaviour, harness, dry_run=False)
    assert real.status == ("unchanged" if "nothing" in behaviour.name else "committed")
    assert counts(dry) == counts(real)
    # Where neither file nor columns tell a row's partition, nothing is told.
    assert connector != "folder" or dry.partition_metrics == ()
    if connector != "folder":
        check_partitions(dry)
    assert dry.metrics.publish_attempts == 0
    assert real.metrics.partitions_changed == len(real.partitions)
    assert bool(real.partitions) == (real.status == "committed")


@pytest.mark.slow
@pytest.mark.parametrize("behaviour", FAILING, ids=str)
def test_a_dry_run_fails_as_the_real_run_does(behaviour: Behaviour, make_table: MakeTable) -> None:
    harness = make_table("append-cow", ORDERS, partitioned=True)
    before = listing(harness.warehouse)

    dry = run(behaviour, harness, dry_run=True)

    assert dry.status == "failed"
    assert listing(harness.warehouse) == before
    check(behaviour, harness)
    assert dry.error is not None
    assert behaviour.fails is not None
    assert dry.error.code == behaviour.fails.code.name


@pytest.mark.slow
def test_a_dry_run_names_the_partitions(make_table: MakeTable) -> None:
    harness = make_table("append-dv", ORDERS, partitioned=True)

    dry = run(delete_from("", "p = 'a' OR p IS NULL AND id > 0"), harness, dry_run=True)

    assert dry.partitions == ("p=NULL", "p=a")
    assert dry.metrics.partitions_changed == 2
    check_partitions(dry)


_BY_CLAUSE = Behaviour(
    "by clause",
    f"""VALUES (100, 1, 'x', 9, 'r', 'a'), (101, 1, 'x', 1, 'r', 'a'), (102, 1, 'x', 1, 'r', 'a'),
    (120, 1, 'x', 9, 'r', 'b'), (140, 1, 'x', 1, 'r', 'c'), (141, 1, 'x', NULL, 'r', 'c'),
    (500, 1, 'x', 1, 'r', 'a'), (501, 1, 'x', 1, 'r', 'z') AS {_ALL}""",
    (
        matched(delete(), "s.n = 9"),
        matched(update(v="s.v"), "s.n = 1"),
        not_matched(insert_all(), "s.n > 1"),
        not_matched(insert_all()),
    ),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "connector",
    ["append-cow-join", "append-dv-located", "append-cow-prepared", "iceberg-mor", "primary-key"],
)
def test_a_dry_run_counts_by_clause_and_partition(connector: str, make_table: MakeTable) -> None:
    harness = make_table(connector, ORDERS_WITHOUT_NULL, partitioned=True)

    with forced_plan(PLANS.get(connector, "auto")) as tally:
        dry = run(_BY_CLAUSE, harness, dry_run=True)

    assert tally.ran == 1
    clauses = [(each.when, each.action, each.rows) for each in dry.metrics.clauses]
    assert clauses == [
        ("matched", "delete", 2),
        ("matched", "update", 3),
        ("not_matched", "insert", 0),
        ("not_matched", "insert", 2),
    ]
    check_partitions(dry)
    found = {
        each.name: (each.inserted, each.updated, each.deleted) for each in dry.partition_metrics
    }
    assert found == {"p=a": (1, 2, 1), "p=b": (0, 0, 1), "p=c": (0, 1, 0), "p=z": (1, 0, 0)}


@pytest.mark.slow
def test_a_row_that_moves_counts_where_it_goes(make_table: MakeTable) -> None:
    harness = make_table("iceberg-cow", ORDERS, partitioned=True)

    dry = run(update_set("", {"p": "'y'"}, "id IN (100, 120)"), harness, dry_run=True)

    check_partitions(dry)
    assert {each.name: each.updated for each in dry.partition_metrics} == {
        "p=a": 0,
        "p=b": 0,
        "p=y": 2,
    }
