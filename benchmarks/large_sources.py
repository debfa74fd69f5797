"""Large and many landed files: seconds and memory.

``python -m benchmarks.large_sources [--gib N] [--files N]``. Reads one CSV file of many gigabytes
with line breaks within quotes allowed (one task) and without (split), the same compressed, and many
small JSON files. Prints seconds until the files are listed, until all rows are read, and the memory
of the largest Python worker.
"""

from __future__ import annotations

import argparse
import gzip
import random
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.comparison import session
from benchmarks.memory import PeakMemory
from benchmarks.sources import FOLDER, LINES, SCHEMA, Bench, written
from spark_jobs.contract.request import FileSource
from spark_jobs.engine.source.landing import land, landing_of

_MIB = 1024 * 1024


def measure(bench: Bench, label: str, path: Path, kind: str, options: Mapping[str, str]) -> None:
    """Print what reading ``path`` takes."""
    source = FileSource("s", str(path.resolve()), kind, options, SCHEMA)
    scratch = bench.scratch()
    with PeakMemory() as memory:
        started = time.perf_counter()
        landing = landing_of(bench.spark, source, bench.connector)
        listed = time.perf_counter()
        found = land(bench.spark, landing, bench.storage, f"{scratch}/source", "bench", None)
        ended = time.perf_counter()
    shutil.rmtree(f"{bench.storage.root}/{scratch}")
    size = found.metrics.bytes / _MIB
    print(
        f"{label:<34} {found.metrics.files:>7,} files {size:>8,.0f} MiB {found.row_count:>12,} rows"
        f"   listed {listed - started:5.1f} s   read {ended - listed:6.1f} s"
        f"   largest worker {memory.largest_worker // _MIB} MiB",
        flush=True,
    )


def compressed(path: Path) -> Path:
    """The only file of a folder, compressed, in a folder of its own."""
    folder = path.with_name(f"{path.name}-gz")
    if not folder.exists():
        folder.mkdir()
        (file,) = path.iterdir()
        with file.open("rb") as plain, gzip.open(folder / f"{file.name}.gz", "wb", 1) as packed:
            shutil.copyfileobj(plain, packed, 16 * _MIB)
    return folder


def small_files(count: int) -> Path:
    """Files of ten JSON lines each."""
    folder = FOLDER / f"json-small-{count}"
    if not folder.exists():
        folder.mkdir(parents=True)
        rng = random.Random(17)
        for number in range(count):
            lines = "".join(LINES["json"](10 * number + i, rng) for i in range(10))
            (folder / f"{number}.json").write_text(lines, encoding="utf-8")
    return folder


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=int, default=10)
    parser.add_argument("--files", type=int, default=100_000)
    parsed = parser.parse_args()
    bench = Bench(session())
    header = {"header": "true"}
    small = written("csv", 1, 64 * _MIB)
    measure(bench, "CSV, warm-up", small, "csv", header)
    measure(bench, "JSON, many files", small_files(parsed.files), "json", {})
    large = written("csv", 1, parsed.gib * 1024 * _MIB)
    measure(bench, "CSV, one file", large, "csv", header)
    measure(bench, "CSV, one file, multiLine=false", large, "csv", {**header, "multiLine": "false"})
    part = compressed(written("csv", 1, 1024 * _MIB))
    measure(bench, "CSV, one file, gzip", part, "csv", header)


if __name__ == "__main__":
    main()
