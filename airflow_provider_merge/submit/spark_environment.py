"""The Python environment that holds pyspark: its spark-submit, and the libraries that jobs need."""

from __future__ import annotations

import logging
import re
import socket
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from airflow_provider_merge.exceptions import invalid
from spark_jobs.contract.tested_versions import (
    RANGES,
    TABLE_LIBRARIES,
    installed_versions,
    requirement_of,
    untested_versions,
)
from spark_jobs.errors import CatalogError, ErrorCode

log = logging.getLogger(__name__)
_OF_ALL_JOBS: Final = ("pyarrow", "pandas", "numpy")
# With these the driver may have another Python, or modules from elsewhere.
_OTHER_MODULES: Final = ("spark.pyspark.", "spark.submit.pyFiles")
_FINDS: Final = "import sys, importlib.util as i; sys.exit(i.find_spec(sys.argv[1]) is None)"
_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class SparkEnvironment:
    """Absolute paths inside the environment."""

    python: Path
    spark_home: Path

    @property
    def spark_submit(self) -> Path:
        """The launcher; it needs neither PATH nor an activated environment."""
        return self.spark_home / "bin" / "spark-submit"

    @property
    def version(self) -> tuple[int, int] | None:
        """The first two numbers of Spark's version; None if pyspark does not tell it."""
        try:
            text = (self.spark_home / "version.py").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        found = re.search(r"^__version__[^=\n]*= *['\"](\d+)\.(\d+)", text, re.MULTILINE)
        return (int(found[1]), int(found[2])) if found else None

    @classmethod
    def at(cls, folder: str, field: str) -> SparkEnvironment:
        """The environment in ``folder``; ``field`` is where that folder was configured.

        Raises:
            RequestError: REQUEST_INVALID when it holds no Python or no pyspark.
        """
        remedy = "Name the folder of a Python environment in which pyspark is installed."
        try:
            root = Path(folder).expanduser()
        except RuntimeError as error:
            raise invalid(field, f"{folder!r}: {error}", remedy) from None
        if not root.is_absolute():
            raise invalid(field, f"{folder!r} is not an absolute path", remedy)
        python = root / "bin" / "python"
        if not python.exists():
            raise invalid(field, f"{python} does not exist", remedy)
        homes = sorted(root.glob("lib/python*/site-packages/pyspark"))
        environments = [cls(python, home) for home in homes]
        for environment in environments:
            if environment.spark_submit.is_file():
                return environment
        raise invalid(field, f"{root} has no pyspark/bin/spark-submit", remedy)


def check_libraries(
    environment: SparkEnvironment,
    connectors: Iterable[str],
    conf: Mapping[str, str],
    variables: Mapping[str, str],
) -> bool:
    """Check the libraries of a driver on this machine before it starts, and warn of versions.

    ``connectors`` name the formats of the job's tables. Returns whether all versions are known,
    so that the driver need not tell.

    Raises:
        CatalogError: LIBRARY_MISSING.
    """
    if any(name.startswith(_OTHER_MODULES) for name in conf):
        return False
    formats = [TABLE_LIBRARIES[each] for each in connectors if each in TABLE_LIBRARIES]
    needed = {*_OF_ALL_JOBS, *formats}
    versions = installed_versions(needed | RANGES.keys(), [str(environment.spark_home.parent)])
    elsewhere = sorted(needed - versions.keys())
    for name in elsewhere:
        if not _finds(environment, name, variables) and not _ships_modules(environment, variables):
            raise _missing(environment, name)
    for sentence in untested_versions(versions):
        log.warning("%s", sentence)
    return not elsewhere


def _finds(environment: SparkEnvironment, name: str, variables: Mapping[str, str]) -> bool:
    """Whether its Python finds the module, wherever that is; so does one that cannot be asked."""
    try:
        done = subprocess.run(
            [environment.python, "-c", _FINDS, name],
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return True
    return done.returncode != 1


def _ships_modules(environment: SparkEnvironment, variables: Mapping[str, str]) -> bool:
    """Whether Spark's own settings may bring modules."""
    folder = Path(variables.get("SPARK_CONF_DIR") or environment.spark_home / "conf")
    try:
        text = (folder / "spark-defaults.conf").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return any(name in text for name in _OTHER_MODULES)


def _missing(environment: SparkEnvironment, name: str) -> CatalogError:
    folder, requirement = environment.python.parents[1], requirement_of(name)
    return CatalogError(
        ErrorCode.LIBRARY_MISSING,
        f"The Spark environment {folder} does not have the Python package {name}, which the job "
        f"needs, on this worker, {socket.gethostname()}.",
        f"Install it there: {folder}/bin/pip install '{requirement}'.",
    )
