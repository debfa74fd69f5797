"""A whole job killed in the middle: spark-submit, its JVM, the driver and the Python workers."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_jobs.contract.request import Origin
from spark_jobs.main import run
from tests.cluster.processes import kill_tree, wait_for
from tests.cluster.standalone import Submission
from tests.conformance.behaviours import BEHAVIOURS
from tests.conformance.check import OPERATION_ID, readable, request_of
from tests.conformance.harness import TARGET
from tests.conformance.paimon_harness import PaimonHarness
from tests.faults.looking import look

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

(_MERGE,) = (each for each in BEHAVIOURS if each.name == "all kinds of clauses together")
_GUARD = f"consumer-merge-{OPERATION_ID}"

Wait = Callable[[Path], None]


def _guarded(warehouse: Path) -> None:
    wait_for("the guard", lambda: list(warehouse.rglob(_GUARD)))


def _unstored(warehouse: Path) -> None:
    """The driver looks for an earlier result first: reading this one never ends."""
    os.mkfifo(_result(warehouse))
    before = set(warehouse.rglob("snapshot-*"))
    (warehouse.parent / "job" / "faults" / "release").touch()
    wait_for("the snapshot", lambda: set(warehouse.rglob("snapshot-*")) - before)
    latest = str(len(before) + 1)
    wait_for("the hint", lambda: next(warehouse.rglob("LATEST")).read_text() == latest)


def _result(warehouse: Path) -> Path:
    return warehouse / "_operations" / f"{OPERATION_ID}.json"


# What the job has done when it is killed; the point where it stops (tests/cluster/executor_python),
# or how to see from outside that it got there; and the table that must be found then.
_KILLS: dict[str, tuple[str | Wait, str]] = {
    "the source is being written": ("spill", "old"),
    "the source is written, the base guarded": (_guarded, "old"),
    "the first data file is being written": ("sink", "old"),
    "all manifests are written, the snapshot is not": ("publish", "old"),
    "the snapshot is made, the hint is not": ("published", "new"),
    "the hint is made, the result is not stored": (_unstored, "new"),
}


@pytest.fixture(scope="module")
def table_of_kills(pytestconfig: pytest.Config) -> Iterator[list[str]]:
    """Rows that are printed once all kills are done."""
    lines: list[str] = []
    yield lines
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        sys.stdout.write("\n" + "\n".join(lines) + "\n")


@pytest.mark.parametrize("moment", _KILLS)
def test_killed_job(
    moment: str, spark: SparkSession, tmp_path: Path, table_of_kills: list[str]
) -> None:
    wait, expected = _KILLS[moment]
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    harness = PaimonHarness(spark, warehouse, partitioned=True)
    harness.create(_MERGE.table)
    request = request_of(_MERGE, harness)
    submission = Submission(
        tmp_path / "job",
        request,
        "local[2]",
        points=(wait,) if isinstance(wait, str) else ("publish",) if wait is _unstored else (),
        executor_python=Path(sys.executable),
    )
    before = look(warehouse, str(TARGET))

    process = submission.start()
    try:
        if isinstance(wait, str):
            submission.hit(wait)
        else:
            if wait is _unstored:
                submission.hit("publish")
            wait(warehouse)
    finally:
        kill_tree(process)

    assert not _result(warehouse).is_file()
    _result(warehouse).unlink(missing_ok=True)
    left = look(warehouse, str(TARGET))
    states = {"old": _MERGE.table.rows, "new": _MERGE.expected_rows}
    (state,) = (name for name, rows in states.items() if readable(rows) == readable(left.rows))
    assert state == expected

    retry = replace(request, origin=Origin(try_number=2))
    result = run(retry, spark)

    assert result.status == "committed", result.error
    after = look(warehouse, str(TARGET))
    assert readable(after.rows) == readable(_MERGE.expected_rows)
    assert after.made_by.count(OPERATION_ID) == 1
    assert len(after.made_by) == len(before.made_by) + 1
    assert after.guards == frozenset()
    then = {1: "found the commit", 2: "applied"}[result.try_number]
    orphans = len(left.on_disk - before.live - after.live)
    assert [each.name for each in warehouse.glob("_operations/*")] == [f"{OPERATION_ID}.json"]
    table_of_kills.append(
        f"{moment:<48} table {state}, next try {then}; orphaned data files: {orphans}"
    )
