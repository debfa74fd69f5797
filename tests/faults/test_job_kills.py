"""A whole job killed in the middle: spark-submit, its JVM, the driver and the Python workers."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_jobs.contract.inserts import InsertOverwriteSpec
from spark_jobs.contract.request import JobRequest, Origin
from spark_jobs.contract.text_limits import TextLimits
from spark_jobs.engine.merge.physical_plan import Plan
from spark_jobs.run import run
from tests.cluster.processes import kill_tree
from tests.cluster.standalone import Submission
from tests.conformance.behaviour import Behaviour
from tests.conformance.behaviours import BEHAVIOURS
from tests.conformance.check import OPERATION_ID, readable, request_of
from tests.conformance.harness import TARGET
from tests.conformance.paimon_harness import PaimonHarness
from tests.conformance.tables import ORDERS
from tests.faults.looking import Seen, look
from tests.support.forced_plans import forced_plan
from tests.support.insert_paths import forced_insert_path
from tests.support.table_kinds import APPEND_COW, APPEND_DV, BUILT, TableKind
from tests.support.turns import has_turn
from tests.support.walking import files_below

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What every plan can run.
(_MERGE,) = (each for each in BEHAVIOURS if each.name == "clauses that read only the source")
# Twelve tasks, whose small files are joined.
_INSERT = Behaviour(
    "an overwrite from a query",
    "(SELECT id, CAST(id AS INT) AS k, concat('v', id) AS v, 1 AS n, 'r' AS req,"
    " if(id % 2 = 0, 'a', 'z') AS p FROM range(3000, 3060, 1, 12)) AS s",
    (),
    statement=InsertOverwriteSpec("s", "dynamic"),
    deleted=frozenset(row["id"] for row in ORDERS.rows if row["p"] == "a"),
    inserted=tuple(
        {"id": n, "k": n, "v": f"v{n}", "n": 1, "req": "r", "p": "az"[n % 2]}
        for n in range(3000, 3060)
    ),
)
_SLEEP = "length(java_method('java.lang.Thread', 'sleep', CAST(500 AS BIGINT))) > 0"
_SLOW = replace(_MERGE, source=f"(SELECT * FROM {_MERGE.source} WHERE {_SLEEP}) AS s")
_PLANS: tuple[Plan, ...] = ("prepared", "located", "join")
_GUARD = f"consumer-merge-{OPERATION_ID}"

Wait = Callable[[Submission, str, Path], None]


def _stopped(submission: Submission, point: str, warehouse: Path) -> None:
    submission.hit(point)


def _spilling(submission: Submission, point: str, warehouse: Path) -> None:
    submission.wait_for("a file of the source", lambda: _found(warehouse, "part-*.parquet"))


def _guarded(submission: Submission, point: str, warehouse: Path) -> None:
    submission.wait_for("the guard", lambda: _found(warehouse, _GUARD))


def _unstored(submission: Submission, point: str, warehouse: Path) -> None:
    """The driver looks for an earlier result first: reading this one never ends."""
    submission.hit(point)
    os.mkfifo(_result(warehouse))
    before = len(_found(warehouse, "snapshot-*"))
    (submission.faults / "release").touch()
    submission.wait_for("the snapshot", lambda: len(_found(warehouse, "snapshot-*")) > before)
    (hint,) = _found(warehouse, "LATEST")
    submission.wait_for("the hint", lambda: hint.read_text() == str(before + 1))


def _found(warehouse: Path, pattern: str) -> list[Path]:
    return [path for path in files_below(warehouse) if path.match(pattern)]


def _result(warehouse: Path) -> Path:
    return warehouse / "_operations" / f"{OPERATION_ID}.json"


# What the job has done when it is killed; the point where it stops (tests/cluster/executor_python),
# so that no late kill finds it further; how to see that it got there; and the table that must be
# found then.
_KILLS: dict[str, tuple[str, Wait, str]] = {
    "the source is being written": ("sink", _spilling, "old"),
    "the source is written, the base guarded": ("sink", _guarded, "old"),
    "the first data file is being written": ("sink", _stopped, "old"),
    "all manifests are written, the snapshot is not": ("publish", _stopped, "old"),
    "the snapshot is made, the hint is not": ("published", _stopped, "new"),
    "the hint is made, the result is not stored": ("publish", _unstored, "new"),
}


@pytest.fixture(scope="module")
def table_of_kills(pytestconfig: pytest.Config) -> Iterator[list[str]]:
    """Rows that are printed once all kills are done."""
    lines: list[str] = []
    yield lines
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        sys.stdout.write("\n" + "\n".join(lines) + "\n")


_CASES = [
    (moment, kind, plan) for kind in (APPEND_COW, APPEND_DV) for plan in _PLANS for moment in _KILLS
]


@pytest.mark.parametrize(
    ("moment", "kind", "plan"),
    [case for number, case in enumerate(_CASES) if has_turn(number, len(_CASES))],
    ids=lambda each: str(getattr(each, "name", each)),
)
def test_killed_job(
    moment: str,
    kind: TableKind,
    plan: Plan,
    spark: SparkSession,
    tmp_path: Path,
    table_of_kills: list[str],
) -> None:
    point, wait, expected = _KILLS[moment]
    harness = _table(spark, tmp_path, kind)
    warehouse = harness.warehouse
    made = request_of(_SLOW if wait is _spilling else _MERGE, harness)
    request = replace(made, text_limits=TextLimits(allow_code=True))
    submission = _submission(tmp_path, request, (point,), plan)
    before = look(warehouse, str(TARGET))

    _kill(submission, lambda: wait(submission, point, warehouse))

    assert not _result(warehouse).is_file()
    _result(warehouse).unlink(missing_ok=True)
    with forced_plan(plan):
        left, then = _retried(spark, harness, request, before, _MERGE)
    assert _state(left, _MERGE) == expected
    where = f"{kind.name:<13}{plan:<10}{moment:<48}"
    table_of_kills.append(f"{where} table {expected}, next try {then}")


@pytest.mark.by_turns(5)
@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ("sink", "old"),
        ("look-1", "old"),
        ("publish", "old"),
        ("published", "new"),
    ],
)
def test_killed_insert_that_streams(
    point: str, expected: str, spark: SparkSession, tmp_path: Path, table_of_kills: list[str]
) -> None:
    """Its tasks write the table's files as they compute rows; by ``look-1`` these are joined."""
    harness = _table(spark, tmp_path, APPEND_COW)
    request = request_of(_INSERT, harness)
    submission = _submission(tmp_path, request, (point,))
    before = look(harness.warehouse, str(TARGET))

    _kill(submission, lambda: submission.hit(point))

    with forced_insert_path("streamed") as tally:
        left, then = _retried(spark, harness, request, before, _INSERT)
    assert _state(left, _INSERT) == expected
    assert tally["streamed"] == (expected == "old")
    where = f"{APPEND_COW.name:<13}{'streamed':<10}{point:<48}"
    table_of_kills.append(f"{where} table {expected}, next try {then}")


# The moments above are where a kill can make a difference.
@pytest.mark.extended
@pytest.mark.parametrize("seed", range(int(os.environ.get("MERGE_JOB_KILLS", "1"))))
def test_job_killed_at_any_time(
    seed: int, spark: SparkSession, tmp_path: Path, table_of_kills: list[str]
) -> None:
    chance = random.Random(seed)
    kind = chance.choice(BUILT)
    seconds = chance.uniform(3, 25)
    plan = chance.choice(_PLANS)
    harness = _table(spark, tmp_path, kind)
    request = request_of(_MERGE, harness)
    submission = _submission(tmp_path, request, (), plan)
    before = look(harness.warehouse, str(TARGET))

    _kill(submission, lambda: time.sleep(seconds))

    left, then = _retried(spark, harness, request, before, _MERGE)
    moment = f"{seconds:.1f} s after its start"
    table_of_kills.append(
        f"{kind.name:<13}{plan:<10}{moment:<48} table {_state(left, _MERGE)}, next try {then}"
    )


def _submission(
    tmp_path: Path, request: JobRequest, points: tuple[str, ...], plan: Plan | None = None
) -> Submission:
    return Submission(
        tmp_path / "job",
        request,
        "local[2]",
        points=points,
        executor_python=Path(sys.executable),
        plan=plan,
    )


def _kill(submission: Submission, reach: Callable[[], object]) -> None:
    """Start the job and kill it, with all of its processes, once ``reach`` has returned."""
    process = submission.start()
    try:
        reach()
    finally:
        kill_tree(process)


def _table(spark: SparkSession, tmp_path: Path, kind: TableKind) -> PaimonHarness:
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    harness = PaimonHarness(spark, warehouse, partitioned=True, kind=kind)
    harness.create(_MERGE.table)
    return harness


def _state(found: Seen, behaviour: Behaviour) -> str:
    """Whether the table has the rows of before the statement, or those of after it."""
    states = {"old": behaviour.table.rows, "new": behaviour.expected_rows}
    (state,) = (name for name, rows in states.items() if readable(rows) == readable(found.rows))
    return state


def _retried(
    spark: SparkSession,
    harness: PaimonHarness,
    request: JobRequest,
    before: Seen,
    behaviour: Behaviour,
) -> tuple[Seen, str]:
    """The table as the kill left it, and what the next try did, which must end in one commit."""
    warehouse = harness.warehouse
    left = look(warehouse, str(TARGET))

    result = run(replace(request, origin=Origin(try_number=2)), spark)

    assert result.status == "committed", result.error
    after = look(warehouse, str(TARGET))
    assert readable(after.rows) == readable(behaviour.expected_rows)
    assert after.made_by.count(OPERATION_ID) == 1
    assert len(after.made_by) == len(before.made_by) + 1
    assert after.guards == frozenset()
    # The second try has shut out the first.
    assert sorted(each.name for each in warehouse.glob("_operations/*")) == [
        f"{OPERATION_ID}-1.fence",
        f"{OPERATION_ID}.json",
    ]
    orphans = len(left.on_disk - before.live - after.live)
    then = {1: "found the commit", 2: "applied"}[result.try_number]
    return left, f"{then}; orphaned data files: {orphans}"
