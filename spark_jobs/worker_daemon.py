"""The daemon that forks Spark's Python workers, started with ``spark.python.daemon.module``.

Every worker is a fork of the daemon and need not import what the daemon has imported: that saves
0.6 seconds of CPU per worker.

PySpark's workers run the garbage collector after each task. Excluding what the daemon has imported
shortens that from 38 ms to 3 ms.

Arrow imports pandas when it makes its first array, to recognize pandas objects: 0.4 seconds. No
task has such objects, so pandas is blocked here.
"""

from __future__ import annotations

import gc
import sys
from contextlib import suppress
from importlib import import_module
from importlib.abc import MetaPathFinder
from typing import Final

from spark_jobs.python_path import forget_archives

# What almost every task needs and takes long to import.
_OF_TASKS: Final = (
    "pyarrow.compute",
    "pyarrow.fs",
    "pyarrow.parquet",
    "spark_jobs.engine.write.change_writer",
    "spark_jobs.engine.insert.insert_writer",
    "spark_jobs.datafiles.rolling_writer",
    "spark_jobs.datafiles.updated_rows",
)


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("workers have no pandas", name=fullname)


def main() -> None:
    """Run PySpark's daemon until Spark ends it."""
    forget_archives()
    sys.meta_path.insert(0, _NoPandas())
    for name in _OF_TASKS:
        # A worker that needs the module reports better what is missing.
        with suppress(ImportError):
            import_module(name)
    from pyspark.daemon import manager

    gc.freeze()
    manager()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
