"""Spark's daemon of Python workers, with no archive on its path.

Spark puts its own ``pyspark.zip``, py4j's and a jar there. Every task of a Python worker empties
the import caches, and Python 3.11 then reads the directories of all these archives again: 0.13 s of
CPU per task, the largest part of a small test (https://github.com/python/cpython/issues/103200).
The same packages are installed as folders.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[:] = [path for path in sys.path if not Path(path).is_file()]
    for path in list(sys.path_importer_cache):
        if not Path(path).is_dir():
            del sys.path_importer_cache[path]
    for name in [name for name in sys.modules if name.split(".")[0] in ("pyspark", "py4j")]:
        del sys.modules[name]

    from pyspark.daemon import manager

    manager()
