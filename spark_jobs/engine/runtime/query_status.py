"""What Spark knows about queries besides their rows: estimates, metrics, running tasks.

Some tasks outlive their failed stage: they go on writing files while nobody waits for them. The
lease makes sure that none of their files stay (``engine.runtime.lease``). Waiting lets them check
it before the job ends and kills them.
"""

from __future__ import annotations

import time
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from spark_jobs.contract.progress_note import Share

# Of the job that starts Python workers while the first statement begins.
START_GROUP: Final = "start-workers"
_STEP = 0.05
_QUIET = 0.3


def observed_metric(frame: DataFrame, observation: str) -> int:
    """The first metric of an observation of a collected frame; 0 if it is absent.

    ``Observation.get`` would wait forever if the optimizer dropped the node.
    """
    metrics = frame._jdf.queryExecution().observedMetrics()
    return int(metrics.apply(observation).getLong(0)) if metrics.contains(observation) else 0


def plan_bytes(frame: DataFrame) -> int:
    """The size of the frame in bytes, as Spark's optimizer estimates it."""
    return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


def _running_tasks(spark: SparkSession) -> int:
    """The number of this application's running tasks, including those of failed stages."""
    tracker = spark._jsparkSession.sparkContext().statusTracker()
    return sum(int(each.numRunningTasks()) for each in tracker.getExecutorInfos())


def share_of(spark: SparkSession, job_group: str | None) -> Share:
    """What has been done of the stages that are at work for a statement.

    ``job_group``: that of its jobs; None: all jobs but that of ``START_GROUP`` are its own.
    """
    context = spark._jsparkSession.sparkContext()
    tracker = context.statusTracker()
    stages = {int(each) for each in tracker.getActiveStageIds()}
    if job_group is None:
        stages -= _stages_of(tracker, START_GROUP)
    else:
        stages &= _stages_of(tracker, job_group)
    done = tasks = rows = 0
    for number in stages:
        stage = tracker.getStageInfo(number)
        if stage.isDefined():
            done += int(stage.get().numCompletedTasks())
            tasks += int(stage.get().numTasks())
            rows += _rows(context, number)
    return Share(done, tasks, rows)


def _stages_of(tracker: Any, job_group: str) -> set[int]:
    """The stages of the jobs of a group, also of those that have ended."""
    jobs = [tracker.getJobInfo(each) for each in tracker.getJobIdsForGroup(job_group)]
    found = [each.get().stageIds() for each in jobs if each.isDefined()]
    return {int(stage) for each in found for stage in each}


def _rows(context: Any, stage: int) -> int:
    """The rows that a stage has read, or passed on, as far as Spark counts them."""
    try:
        told = context.statusStore().lastStageAttempt(stage)
        counts = (told.inputRecords(), told.shuffleReadRecords(), told.shuffleWriteRecords())
        return max(map(int, counts))
    except Exception:  # noqa: BLE001 - this store is Spark's own: a release may not have it
        return 0


def wait_for_stragglers(spark: SparkSession, seconds: float = 30.0) -> None:
    """Wait until no task has been running for a moment, for at most ``seconds``.

    Spark reports a failed stage at once and only asks its other tasks to stop. The Python worker of
    a task ends a moment after the task.
    """
    now = quiet_since = time.monotonic()
    deadline = now + seconds
    while now - quiet_since < _QUIET and now < deadline:
        time.sleep(_STEP)
        now = time.monotonic()
        if _running_tasks(spark):
            quiet_since = now
