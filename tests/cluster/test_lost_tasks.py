"""Sink tasks that die or are run twice: each file is rewritten exactly once all the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from spark_jobs.engine.merge.physical_plan import Plan
from tests.cluster.merging import ClusterMerge, ClusterMerges
from tests.cluster.processes import ancestor, kill, wait_for
from tests.conformance.behaviour import Behaviour
from tests.conformance.behaviours import BEHAVIOURS
from tests.support.walking import files_below

(_MERGE,) = (each for each in BEHAVIOURS if each.name == "all kinds of clauses together")
(_PREPARED,) = (each for each in BEHAVIOURS if each.name == "clauses that read only the source")


def _open_file(merge: ClusterMerge) -> Path:
    """The file that the stopped sink task is writing: it alone has no footer in the end."""

    def unfinished() -> list[Path]:
        files = files_below(merge.harness.warehouse)
        data = [path for path in files if path.match("data-*.parquet")]
        new = [path for path in data if str(path) not in merge.before.on_disk]
        return [path for path in new if not _is_whole(path)]

    (path,) = wait_for("the others", lambda: found if len(found := unfinished()) == 1 else [])
    return path


def _is_whole(path: Path) -> bool:
    """Whether nobody writes it any more; a copy that lost may have removed its own."""
    try:
        return path.read_bytes()[-4:] == b"PAR1"
    except FileNotFoundError:
        return True


def _check_once(merge: ClusterMerge, lost: Path) -> None:
    """Every row once, and nothing of the lost attempt in the snapshot."""
    after = merge.check(leftovers=True)
    assert str(lost) not in after.files
    added = [file for path, file in after.files.items() if path not in merge.before.files]
    ids = Counter(row["id"] for file in added for row in file.rows)
    assert set(ids.values()) == {1}


@pytest.mark.by_turns(2, 0)
@pytest.mark.parametrize(
    "victim",
    [
        "python worker",
        # test_source_once kills one in its sink, too.
        pytest.param("executor", marks=pytest.mark.extended),
    ],
)
def test_killed_sink_task_is_run_again(merges: ClusterMerges, victim: str) -> None:
    merge = merges.start(_MERGE, points=("sink",))
    worker = merge.submission.hit("sink")
    lost = _open_file(merge)

    kill(worker if victim == "python worker" else ancestor(worker, "CoarseGrainedExecutorBackend"))

    _check_once(merge, lost)
    reasons = {task["Task End Reason"]["Reason"] for task in merge.submission.tasks}
    expected = "ExceptionFailure" if victim == "python worker" else "ExecutorLostFailure"
    assert expected in reasons


@pytest.mark.by_turns(2, 1)
@pytest.mark.parametrize(
    ("behaviour", "plan"),
    [
        (_MERGE, "join"),
        # The same writer, at the end of another kind of task.
        pytest.param(_PREPARED, "located", marks=pytest.mark.extended),
        pytest.param(_PREPARED, "prepared", marks=pytest.mark.extended),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_speculative_copy_of_a_slow_sink_task(
    merges: ClusterMerges, behaviour: Behaviour, plan: Plan
) -> None:
    aggressive = {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.25",
        "spark.speculation.minTaskRuntime": "100ms",
    }
    # It waits until the job ends; only the copy that Spark starts beside it can end the stage.
    merge = merges.start(behaviour, points=("sink",), conf=aggressive, plan=plan)
    merge.submission.hit("sink")
    slow = _open_file(merge)

    _check_once(merge, slow)
    copies = [task for task in merge.submission.tasks if task["Task Info"]["Speculative"]]
    assert any(task["Task End Reason"]["Reason"] == "Success" for task in copies)
