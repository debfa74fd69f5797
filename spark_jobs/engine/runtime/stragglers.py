"""Tasks that outlive their failed stage: they go on writing files while nobody waits for them.

The lease makes sure that none of their files stay (``engine.runtime.lease``). Waiting lets them
check it before the job ends and kills them.
"""

from __future__ import annotations

import time

from pyspark.sql import SparkSession

from spark_jobs.engine.runtime.query_status import running_tasks

_STEP = 0.05
_QUIET = 0.3


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
        if running_tasks(spark):
            quiet_since = now
