"""How Spark is set up where the master is local: driver and workers start and end with the job."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

# The user's conf takes precedence.
LOCAL_CONF: Final = {
    # A page on this machine that ends with the job; a second of CPU.
    "spark.ui.enabled": "false",
    "spark.python.daemon.module": "spark_jobs.worker_daemon",
}


def local_variables(package: Path, variables: Mapping[str, str]) -> Mapping[str, str]:
    """The environment in which driver, workers and their daemon find the job's package."""
    paths = [str(package), variables.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}
