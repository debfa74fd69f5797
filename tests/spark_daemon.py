"""Spark's daemon of Python workers, with no archive on its path and the large libraries loaded.

Spark puts its own ``pyspark.zip``, py4j's and a jar there. Every task of a Python worker empties
the import caches, and Python 3.11 then reads the directories of all these archives again: 0.13 s of
CPU per task, the largest part of a small test (https://github.com/python/cpython/issues/103200).
The same packages are installed as folders.

A task that fails ends its worker. The next one is a fork of the daemon: what the daemon has
imported, no worker imports again, which is a second of CPU for each.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

_EVERY_WORKER_NEEDS = ("pandas", "pyarrow.compute", "pyarrow.fs", "pyarrow.parquet")

if __name__ == "__main__":
    sys.path[:] = [path for path in sys.path if not Path(path).is_file()]
    for path in list(sys.path_importer_cache):
        if not Path(path).is_dir():
            del sys.path_importer_cache[path]
    for name in [name for name in sys.modules if name.split(".")[0] in ("pyspark", "py4j")]:
        del sys.modules[name]

    from pyspark.daemon import manager

    for library in _EVERY_WORKER_NEEDS:
        import_module(library)
    manager()
