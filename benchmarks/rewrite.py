"""Rewriting one data file with some rows changed, without Spark.

``python -m benchmarks.rewrite [--rows N] [--rounds N] [--profile]``, in ``.venv-spark``: a file of
16 columns of which 0.9 % of the rows are updated, with and without 0.1 % deleted ones, and a file
of 200 columns of which two are assigned; pyarrow wrote them with its defaults. Prints the CPU time
of the fastest round and the size of the new file.
"""

from __future__ import annotations

import argparse
import cProfile
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from benchmarks import lineitem
from benchmarks.natives.data import wide_rows
from spark_jobs.datafiles.file_changes import ColumnChange, FileChanges
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.parquet.rewrite import rewrite

_COMPRESSION = Compression("zstd", 1)
_FILES = pafs.LocalFileSystem()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--profile", action="store_true")
    parsed = parser.parse_args()
    rows, narrow = parsed.rows, parsed.rows // 10
    lines = lineitem.rows_between(0, rows)
    wide = wide_rows(0, narrow)
    works = {
        "16 columns, updates": (lines, _changes(lines, ("price", "comment"), 0)),
        "16 columns, updates and deletes": (lines, _changes(lines, ("price", "comment"), 10)),
        "200 columns, updates": (wide, _changes(wide, ("c5", "c6"), 0)),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, (table, changes) in works.items():
            path = str(Path(folder) / "old.parquet")
            pq.write_table(table, path, compression="zstd", compression_level=1)
            seconds, size = _measured(path, changes, parsed.rounds)
            print(f"{name}: {seconds * 1000:.0f} ms, {size / 2**20:.1f} MiB")
            if parsed.profile:
                with cProfile.Profile() as profile:
                    _measured(path, changes, 3)
                profile.print_stats("tottime")


def _changes(table: pa.Table, assigned: tuple[str, ...], one_in: int) -> FileChanges:
    """Each hundredth row is updated, or deleted if ``one_in`` of them is."""
    positions = np.arange(7, table.num_rows, 100)
    deleted = np.zeros(len(positions), dtype=np.bool_)
    if one_in:
        deleted[::one_in] = True
    updated = np.flatnonzero(~deleted)
    values = table.take(positions[updated][::-1])
    columns = {
        name: ColumnChange(updated, values.column(name).combine_chunks()) for name in assigned
    }
    return FileChanges(positions, deleted, columns)


def _measured(path: str, changes: FileChanges, rounds: int) -> tuple[float, int]:
    fastest, size = float("inf"), 0
    for _ in range(rounds):
        started = time.process_time()
        written = rewrite(_FILES, path, f"{path}.new", changes, _COMPRESSION)
        fastest = min(fastest, time.process_time() - started)
        size = written.size if written else 0
    return fastest, size


if __name__ == "__main__":
    main()
