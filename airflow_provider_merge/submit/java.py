"""The Java of this worker: which one Spark's launcher takes, and whether this Spark runs on it."""

from __future__ import annotations

import functools
import re
import shutil
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from airflow_provider_merge.submit.spark_environment import SparkEnvironment
from spark_jobs.errors import CatalogError, ErrorCode

HOME: Final = "JAVA_HOME"
_SECONDS: Final = 60
_VERSION: Final = re.compile(r'(?:^JAVA_VERSION=|\bversion )"(?:1\.)?(\d+)', re.MULTILINE)
# Settings of a Spark home, which choose a Java behind this worker's back.
_OWN_SETTINGS: Final = "spark-env.sh"


class _Range(NamedTuple):
    """Versions of Java: the first that a Spark runs on, and the first on which it is known not to.

    ``named`` are those that its makers test. None: no version is known to be too new.
    """

    first: int
    too_new: int | None
    named: str


# By the first versions of Spark, newest first. In Java 24, what Hadoop asks for its user is gone.
_RANGES: Final = {
    (4, 2): _Range(17, None, "17 or 21"),
    (4, 0): _Range(17, 24, "17 or 21"),
    (3, 5): _Range(8, 24, "8, 11, 17 or 21"),
}


def require_java(environment: SparkEnvironment, variables: Mapping[str, str]) -> None:
    """Check that there is a Java for Spark's launcher, and that this Spark runs on it.

    Raises:
        CatalogError: JAVA_NOT_FOUND.
    """
    spark = environment.version
    fitting = next((found for first, found in _RANGES.items() if spark and spark >= first), None)
    if spark is None or fitting is None or _may_choose_itself(environment, variables):
        return
    needs = f"Spark {'.'.join(map(str, spark))} needs Java {fitting.named}"
    java = java_of(variables)
    if java is None:
        raise _not_found(f"{needs}, and there is none", variables)
    version = _version(java)
    if version is None:
        raise _not_found(f"{needs}, and {java} does not run", variables)
    is_too_new = fitting.too_new is not None and version >= fitting.too_new
    if version < fitting.first or is_too_new:
        raise _not_found(f"{needs}, and {java} is Java {version}", variables)


def java_of(variables: Mapping[str, str]) -> Path | None:
    """The Java that Spark's launcher takes: that of JAVA_HOME, else the first on PATH."""
    home = variables.get(HOME)
    found = Path(home, "bin", "java") if home else shutil.which("java", path=variables.get("PATH"))
    return Path(found).resolve() if found is not None and Path(found).is_file() else None


def _may_choose_itself(environment: SparkEnvironment, variables: Mapping[str, str]) -> bool:
    folder = Path(variables.get("SPARK_CONF_DIR") or environment.spark_home / "conf")
    try:
        text = (folder / _OWN_SETTINGS).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return HOME in text or "PATH" in text


def _version(java: Path) -> int | None:
    """The first number of the version; None: it does not run. The file beside it tells at once."""
    for folder in java.parents[1:3]:
        try:
            found = _VERSION.search((folder / "release").read_text(errors="replace"))
        except OSError:
            continue
        if found:
            return int(found[1])
    try:
        return _told_version(java, java.stat().st_mtime_ns)
    except OSError:
        return None


@functools.cache
def _told_version(java: Path, changed: int) -> int | None:
    """What it says itself; ``changed`` is when it last did."""
    del changed
    try:
        done = subprocess.run(
            [java, "-version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(done.stdout.decode(errors="replace"))
    return int(found[1]) if found and done.returncode == 0 else None


def _not_found(problem: str, variables: Mapping[str, str]) -> CatalogError:
    home = variables.get(HOME)
    looked = f"{HOME} is {home}" if home else f"{HOME} is not set, so PATH was searched"
    return CatalogError(
        ErrorCode.JAVA_NOT_FOUND,
        f"{problem}, on this worker, {socket.gethostname()}. {looked}.",
        f"Install such a Java there, and let {HOME} of the worker's environment name it.",
    )
