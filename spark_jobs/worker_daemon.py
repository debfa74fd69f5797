"""The daemon that forks Spark's Python workers, started with ``spark.python.daemon.module``.

Every worker is a fork of the daemon and need not import what the daemon has imported: that saves
0.6 seconds of CPU per worker.

PySpark's workers run the garbage collector after each task. Excluding what the daemon has imported
shortens that from 38 ms to 3 ms.

Arrow imports pandas when it makes its first array, to recognize pandas objects: 0.4 seconds. No
task has such objects, so pandas is blocked here.

Spark ends a worker by closing its socket. PySpark's daemon prints a trace where the worker then
still has something to say.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.abc import MetaPathFinder
from typing import IO, Final

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


_Work = Callable[[IO[bytes], IO[bytes]], None]


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("workers have no pandas", name=fullname)


def ending_quietly(work: _Work) -> _Work:
    """A worker's ``work``, after which the process ends if nobody reads what it has to say."""

    def run(infile: IO[bytes], outfile: IO[bytes]) -> None:
        try:
            work(infile, outfile)
        finally:
            try:
                outfile.flush()
            except BrokenPipeError:
                os._exit(1)  # as the daemon's worker would, but for the trace

    return run


def main() -> None:
    """Run PySpark's daemon until Spark ends it."""
    forget_archives()
    sys.meta_path.insert(0, _NoPandas())
    for name in _OF_TASKS:
        # A worker that needs the module reports better what is missing.
        with suppress(ImportError):
            import_module(name)
    from pyspark import daemon

    daemon.worker_main = ending_quietly(daemon.worker_main)
    gc.freeze()
    daemon.manager()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
