"""Spark's daemon of Python workers on this machine, started with ``spark.python.daemon.module``.

Every worker is a fork of the daemon, so what the daemon has imported no worker imports again: half
a second of CPU for each.

PySpark's workers collect garbage after each task. What the daemon has imported is none: without it
they need 3 ms instead of 38.

Arrow imports pandas when it makes its first array, to know pandas' classes when it sees them: 0.4
seconds. No task sees one, so there is no pandas here.
"""

from __future__ import annotations

import gc
import sys
from contextlib import suppress
from importlib import import_module
from importlib.abc import MetaPathFinder
from typing import Final

from spark_jobs.python_path import forget_archives

# What almost every task needs, and what takes long to import.
_OF_TASKS: Final = ("pyarrow.compute", "pyarrow.fs", "pyarrow.parquet")


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("workers have no pandas", name=fullname)


def main() -> None:
    """Run PySpark's daemon until Spark ends it."""
    forget_archives()
    sys.meta_path.insert(0, _NoPandas())
    for name in _OF_TASKS:
        # A worker that needs it says better what is missing.
        with suppress(ImportError):
            import_module(name)
    from pyspark.daemon import manager

    gc.freeze()
    manager()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
