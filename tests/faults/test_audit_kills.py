"""A whole job that is killed while it publishes its audit: spark-submit, its JVM and its workers.

The target is published by then. The next try inserts the audit if it is missing, and only then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cluster.processes import kill_tree
from tests.cluster.standalone import Submission
from tests.support.audited_tables import AuditedTable
from tests.support.turns import has_turn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS = "(1, 'b', 0), (2, 'b', 1), (4, 'b', 1)"

Kill = Callable[[Submission], None]


def _looking(submission: Submission) -> None:
    submission.hit("look-2")


def _arriving(submission: Submission) -> None:
    submission.hit("published")


def _writing(submission: Submission) -> None:
    _go_on(submission, "published", "sink")


def _publishing(submission: Submission) -> None:
    _go_on(submission, "published", "publish")


def _published(submission: Submission) -> None:
    _go_on(submission, "published", "publish")
    for name in ("hit", "release"):
        (submission.faults / f"{name}-published").unlink()
    _go_on(submission, "publish", "published")


def _go_on(submission: Submission, stopped: str, until: str) -> None:
    """Let the job, which is about to stop or has stopped at a point, go on to another one."""
    submission.hit(stopped)
    (submission.faults / f"armed-{until}").touch()
    (submission.faults / f"release-{stopped}").touch()
    submission.hit(until)


# Where the job is killed: the point where it first stops, what happens then, and whether its audit
# is there. The points of snapshot files are Paimon's.
_KILLS: dict[str, tuple[str, Kill, bool]] = {
    "the target is published": ("published", _arriving, False),
    "the audit's first file is being written": ("published", _writing, False),
    "all files of the audit are written": ("look-2", _looking, False),
    "all manifests of the audit are written": ("published", _publishing, False),
    "the audit's snapshot is made": ("published", _published, True),
}
_CASES = [("append", moment) for moment in _KILLS]
_CASES.append(("iceberg-mor", "all files of the audit are written"))


@pytest.mark.parametrize(
    ("kind", "moment"), [case for at, case in enumerate(_CASES) if has_turn(at, len(_CASES))]
)
def test_a_job_killed_in_its_audit(
    kind: str, moment: str, spark: SparkSession, tmp_path: Path
) -> None:
    point, kill, is_audited = _KILLS[moment]
    (tmp_path / "warehouse").mkdir()
    table = AuditedTable(spark, kind, tmp_path / "warehouse")
    first = table.tried(table.merge("first", "(1, 'a', 1), (2, 'a', 1), (3, 'a', 1)"), 1)
    assert first is not None
    before, had = table.rows(), table.audit()
    request = table.merge("op", _ROWS)
    submission = Submission(
        tmp_path / "job",
        request,
        "local[2]",
        points=(point,),
        executor_python=Path(sys.executable),
    )

    process = submission.start()
    try:
        kill(submission)
    finally:
        kill_tree(process)

    assert {row["v"] for row in table.rows()} == {"a", "b"}, "the target was not published"
    assert len(table.audit()) == len(had) + (3 if is_audited else 0)
    result = table.tried(request, 2)
    assert result is not None
    assert (result.status, result.try_number) == ("committed", 1)
    table.require_audited(result, before, had)
