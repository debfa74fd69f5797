"""The first job of an environment leaves a process that makes the archive of Spark's classes.

``python -m airflow_provider_merge.submit.background_archive FOLDER SPARK_ENV`` is that process. It
has the lowest priority, is the first that the kernel ends for lack of memory, and outlives the
task. A failure is noted beside the archives, so that the jobs of a day do not fail to make one
again and again.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from airflow_provider_merge.submit.class_archive import NoArchiveError, archive_key, require_own
from airflow_provider_merge.submit.class_archive_maker import is_being_made, make
from airflow_provider_merge.submit.spark_environment import SparkEnvironment
from spark_jobs.errors import JobError

log = logging.getLogger(__name__)

_FREE_BYTES: Final = 1 << 30
_SECONDS_BETWEEN_TRIES: Final = 24 * 60 * 60
_LOWEST_PRIORITY: Final = 19
# What Java, Python and Airflow's configuration need; no connection and no secret is among them.
_VARIABLES: Final = (
    *("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LANG", "LANGUAGE", "JAVA_HOME"),
    *("LD_LIBRARY_PATH", "LD_PRELOAD", "NSS_WRAPPER_PASSWD", "NSS_WRAPPER_GROUP"),
    *("PYTHONPATH", "AIRFLOW_HOME", "AIRFLOW_CONFIG"),
)


def leave_maker(
    folder: Path, environment: SparkEnvironment, variables: Mapping[str, str]
) -> subprocess.Popen[bytes] | None:
    """Start the process, unless one is at work, has failed today, or would find no room.

    What happens is logged; nothing is raised.
    """
    process = None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_own(folder)
        problem = _problem(folder, archive_key(environment, variables))
        if problem is None:
            process = _start(folder, environment, variables)
            problem = "it is being made in the background"
    except (NoArchiveError, OSError) as error:
        problem = f"it cannot be made: {error}"
    log.info("The archive of Spark's classes, with which Java starts sooner: %s", problem)
    return process


def _problem(folder: Path, key: str) -> str | None:
    """Why none is made now."""
    if is_being_made(folder):
        return "it is being made"
    note = _note(folder, key)
    with contextlib.suppress(FileNotFoundError):
        if time.time() - note.stat().st_mtime < _SECONDS_BETWEEN_TRIES:
            return f"it could not be made, see {note}"
    free = shutil.disk_usage(folder).free
    if free < _FREE_BYTES:
        return f"{folder} has {free >> 20} MB left, which is too little to make it"
    return None


def _note(folder: Path, key: str) -> Path:
    return folder / f"spark-{key}.failed"


def _start(
    folder: Path, environment: SparkEnvironment, variables: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    kept = {key: variables[key] for key in variables if key in _VARIABLES or key[:3] == "LC_"}
    root = environment.python.parents[1]
    return subprocess.Popen(
        [sys.executable, "-m", __name__, str(folder), str(root)],
        env=kept,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _main(folder: Path, spark_env: str) -> None:
    os.nice(_LOWEST_PRIORITY)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    environment = SparkEnvironment.at(spark_env, "spark_env")
    note = _note(folder, archive_key(environment, os.environ))
    if is_being_made(folder):
        return
    try:
        make(folder, environment, os.environ)
    except (JobError, NoArchiveError) as error:
        note.write_text(f"{error}\n", encoding="utf-8")
    else:
        note.unlink(missing_ok=True)


if __name__ == "__main__":
    _main(Path(sys.argv[1]), sys.argv[2])
