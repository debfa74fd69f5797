"""How Spark is set up where the master is local: driver and workers start and end with the job."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Final

# Where Spark's pages say that they are.
_PUBLIC_NAME: Final = "SPARK_PUBLIC_DNS"


def local_conf(folder: Path) -> dict[str, str]:
    """Settings of a job whose files are in ``folder``; the user's conf takes precedence.

    Workers talk to the JVM through Unix sockets (Spark 4.1 and later), which only who may read the
    private folder can open. Through TCP each task waits 40 ms for a delayed acknowledgement.
    """
    conf = {
        # A page on this machine that ends with the job; a second of CPU.
        "spark.ui.enabled": "false",
        "spark.python.daemon.module": "spark_jobs.worker_daemon",
        # Spark's 200 are meant for clusters: each task of a small job writes and reads them all.
        "spark.sql.shuffle.partitions": str(min(200, max(16, 4 * (os.cpu_count() or 1)))),
    }
    if _takes_sockets(folder):
        conf["spark.python.unix.domain.socket.enabled"] = "true"
        conf["spark.python.unix.domain.socket.dir"] = str(folder)
    return conf


def local_variables(package: Path, variables: Mapping[str, str]) -> Mapping[str, str]:
    """The environment in which driver, workers and their daemon find the job's package.

    And the name of the machine for links to the driver's page, as the driver itself is bound to
    the loopback address.
    """
    paths = [str(package), variables.get("PYTHONPATH", "")]
    return {
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        _PUBLIC_NAME: variables.get(_PUBLIC_NAME) or socket.gethostname(),
    }


def _takes_sockets(folder: Path) -> bool:
    """Whether the path is short enough for a socket's, and its file system has them."""
    path = folder / f".{uuid.uuid4()}.sock"  # as Spark names it
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.bind(str(path))
    except OSError:
        return False
    path.unlink()
    return True
