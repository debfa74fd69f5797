"""What passed before a job's first line: phases that only the clocks of its processes tell.

In client mode the launcher (``bin/spark-submit``) becomes Spark's JVM, which starts the driver's
Python, which imports the job.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from spark_jobs.engine.progress import Progress


def count_imports(progress: Progress) -> None:
    """Count the seconds since this process started as ``imports``; call it after the last one."""
    started = _python_started()
    if started is not None:
        progress.spent("imports", time.time() - started)


def count_launch(progress: Progress, spark: SparkSession, launched: float | None) -> None:
    """Count ``jvm``, and since ``launched`` (seconds since 1970, or None) ``launcher``.

    Nothing is counted where Python started the JVM, as notebooks do.
    """
    jvm: Any = spark._jvm
    management = jvm.java.lang.management.ManagementFactory
    jvm_started = management.getRuntimeMXBean().getStartTime() / 1000
    python_started = _python_started()
    if python_started is None or python_started < jvm_started:
        return
    progress.spent("jvm", python_started - jvm_started)
    if launched is not None:
        progress.spent("launcher", max(0.0, jvm_started - launched))


def _python_started() -> float | None:
    """When this process started, in seconds since 1970; None where only Linux would tell."""
    try:
        fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    after_boot = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - after_boot)
