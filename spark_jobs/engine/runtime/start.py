"""The start and the end of a job: timings of the start, and workers that start in the background.

In client mode the launcher (``bin/spark-submit``) becomes Spark's JVM, which starts the driver's
Python, which imports the job.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from spark_jobs.engine.runtime.java_names import java_class
from spark_jobs.engine.runtime.progress import Progress
from spark_jobs.engine.runtime.query_status import START_GROUP
from spark_jobs.spi.arrow_tasks import map_in_arrow

if TYPE_CHECKING:
    import pyarrow as pa


def count_imports(progress: Progress) -> None:
    """Count the seconds since this process started as ``imports``; call after the last import."""
    started = _python_started()
    if started is not None:
        progress.spent("imports", time.time() - started)


def count_launch(progress: Progress, spark: SparkSession, launched: float | None) -> None:
    """Count ``jvm`` and, unless ``launched`` (seconds since 1970) is None, ``launcher``.

    Nothing is counted if Python started the JVM, as in notebooks.
    """
    management = java_class(spark, "java.lang.management.ManagementFactory")
    jvm_started = management.getRuntimeMXBean().getStartTime() / 1000
    python_started = _python_started()
    if python_started is None or python_started < jvm_started:
        return
    progress.spent("jvm", python_started - jvm_started)
    if launched is not None:
        progress.spent("launcher", max(0.0, jvm_started - launched))


def start_workers(spark: SparkSession) -> None:
    """Start the Python workers of a local master in the background, during the analysis.

    On a cluster they belong to the executors, which may not have started yet.
    """
    if str(spark.sparkContext.master).startswith("local"):
        Thread(target=_start_workers, args=(spark,), daemon=True).start()


def stop(spark: SparkSession) -> None:
    """End the application, right before this process ends.

    ``spark.stop()`` would also wait up to a second for the thread that reads accumulators.
    """
    spark._jsparkSession.stop()


def _start_workers(spark: SparkSession) -> None:
    # If it fails, so does the statement, with a better error.
    with suppress(Exception):
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", START_GROUP)
        size = spark.sparkContext.defaultParallelism
        map_in_arrow(spark.range(size, numPartitions=size), _handed_on, "id long").collect()


def _handed_on(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    # Spark does not reuse a worker whose input was not read.
    yield from batches


def _python_started() -> float | None:
    """When this process started, in seconds since 1970; None on systems other than Linux."""
    try:
        fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    after_boot = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - after_boot)
