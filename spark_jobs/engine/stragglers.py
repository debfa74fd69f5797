"""Tasks that outlive their failed stage: they go on writing files while nobody waits for them."""

from __future__ import annotations

import time

from pyspark.sql import SparkSession

from spark_jobs.engine.catalyst import running_tasks

_STEP = 0.05


def wait_for_stragglers(spark: SparkSession, seconds: float = 30.0) -> None:
    """Wait until no task runs any more, at most ``seconds``.

    Spark reports a failed stage at once and only asks its other tasks to stop, so that what they
    write could appear after the clean-up.
    """
    deadline = time.monotonic() + seconds
    while running_tasks(spark) and time.monotonic() < deadline:
        time.sleep(_STEP)
