"""Makes Python import PySpark from its compiled copy beside Spark, not from archives of source.

Spark puts its ``pyspark.zip`` and py4j's archive first on the path. Python compiles what it imports
from them every time: 0.3 s for a driver. Also, each task of a worker clears Python's import caches,
and then Python 3.11 reads the directories of all archives again: 0.13 s of CPU
(https://github.com/python/cpython/issues/103200).
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

_PACKAGES = ("pyspark", "py4j")


def forget_archives() -> None:
    """Take Spark's archives off the path if a PySpark of the same Spark follows them there.

    Call it before anything imports PySpark.
    """
    folders = [path for path in sys.path if path not in _archives()]
    if _home_of_pyspark(folders) != _spark_home() or PathFinder.find_spec("py4j", folders) is None:
        return
    sys.path[:] = folders
    for name in [name for name in sys.modules if name.split(".")[0] in _PACKAGES]:
        del sys.modules[name]
    for path in list(sys.path_importer_cache):
        if path not in folders and Path(path).is_file():
            del sys.path_importer_cache[path]


def _archives() -> list[str]:
    """The archives that Spark puts on the path: PySpark, py4j, and a jar."""
    own = __file__.partition(f"{os.sep}spark_jobs{os.sep}")[0]
    return [path for path in sys.path if path != own and Path(path).is_file()]


def _home_of_pyspark(folders: list[str]) -> Path | None:
    spec = PathFinder.find_spec("pyspark", folders)
    return None if spec is None or spec.origin is None else Path(spec.origin).resolve().parent


def _spark_home() -> Path | None:
    """The real home of Spark, which the home beside a class archive links to."""
    home = os.environ.get("SPARK_HOME")
    return Path(home, "bin").resolve().parent if home else None
