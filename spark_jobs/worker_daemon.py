"""Spark's daemon of Python workers on this machine, started with ``spark.python.daemon.module``.

Every worker is a fork of the daemon, so what the daemon has imported no worker imports again: half
a second of CPU for each.

Spark puts its own ``pyspark.zip``, py4j's and a jar on the path. Each task of a worker empties
Python's import caches, and Python 3.11 then reads the directories of all these archives again: 0.13
seconds of CPU per task (https://github.com/python/cpython/issues/103200). Where the same packages
are installed as folders, those archives go; the archive of this package stays.

Arrow imports pandas when it makes its first array, to know pandas' classes when it sees them: 0.4
seconds. No task sees one, so there is no pandas here.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module, invalidate_caches
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Final

# What almost every task needs, and what takes long to import.
_OF_TASKS: Final = ("pyarrow.compute", "pyarrow.fs", "pyarrow.parquet")


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("workers have no pandas", name=fullname)


def main() -> None:
    """Run PySpark's daemon until Spark ends it."""
    _forget_archives()
    sys.meta_path.insert(0, _NoPandas())
    for name in _OF_TASKS:
        # A worker that needs it says better what is missing.
        with suppress(ImportError):
            import_module(name)
    from pyspark.daemon import manager

    manager()


def _forget_archives() -> None:
    """Take Spark's archives off the path, if pyspark is installed beside them."""
    own = next((path for path in sys.path if __file__.startswith(path + "/")), "")
    before = list(sys.path)
    sys.path[:] = [path for path in before if path == own or not Path(path).is_file()]
    invalidate_caches()
    for name in [name for name in sys.modules if name.split(".")[0] in ("pyspark", "py4j")]:
        del sys.modules[name]
    if find_spec("pyspark") is None or find_spec("py4j") is None:
        sys.path[:] = before
    for path in list(sys.path_importer_cache):
        if path not in sys.path and Path(path).is_file():
            del sys.path_importer_cache[path]


if __name__ == "__main__":
    main()
