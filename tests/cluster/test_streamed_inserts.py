"""INSERTs whose tasks store what a random query yields: each row once, whatever dies or runs twice.

A task that is tried again yields other values. Only the files of tasks that succeeded count.
"""

from __future__ import annotations

from collections import Counter

import pytest

from spark_jobs.contract.inserts import InsertIntoSpec
from tests.cluster.merging import ClusterMerge, ClusterMerges
from tests.cluster.processes import ancestor, kill
from tests.conformance.behaviour import Behaviour
from tests.conformance.tables import EMPTY

_ROWS = 4_000
_QUERY = f"""(
    SELECT id, CAST(rand() * 1000000000 AS INT) AS k, uuid() AS v, 1 AS n, 'r' AS req,
           if(rand() < 0.5, 'heads', 'tails') AS p
    FROM range(0, {_ROWS}, 1, 4)
) AS s"""
_INSERT = Behaviour(
    "an insert of random rows", _QUERY, (), statement=InsertIntoSpec("s"), table=EMPTY, matched=0
)
_AGGRESSIVE = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.25",
    "spark.speculation.minTaskRuntime": "100ms",
}


@pytest.mark.by_turns(3)
@pytest.mark.parametrize("fate", ["python worker killed", "executor killed", "run twice"])
def test_random_rows_are_stored_once(merges: ClusterMerges, fate: str) -> None:
    conf = _AGGRESSIVE if fate == "run twice" else {}
    merge = merges.start(_INSERT, points=("sink",), conf=conf)
    worker = merge.submission.hit("sink")

    if fate == "python worker killed":
        kill(worker)
    elif fate == "executor killed":
        kill(ancestor(worker, "CoarseGrainedExecutorBackend"))

    _check(merge)
    tasks = merge.submission.tasks
    reasons = {task["Task End Reason"]["Reason"] for task in tasks}
    if fate == "run twice":
        copies = [task for task in tasks if task["Task Info"]["Speculative"]]
        assert any(task["Task End Reason"]["Reason"] == "Success" for task in copies)
    else:
        lost = {
            "python worker killed": "ExceptionFailure",
            "executor killed": "ExecutorLostFailure",
        }
        assert lost[fate] in reasons


def _check(merge: ClusterMerge) -> None:
    result = merge.result()
    assert result.error is None, result.error
    after = merge.harness.state()
    assert Counter(row["id"] for row in after.rows) == Counter(range(_ROWS))
    assert len({row["v"] for row in after.rows}) == _ROWS
    assert result.metrics.inserted == result.metrics.source_rows == _ROWS
    for file in after.files.values():
        assert len({row["p"] for row in file.rows}) == 1
    assert not list(merge.harness.warehouse.glob("_operations/*/source-*"))
