"""Reading landed files beside Spark's own readers with their defaults, alternating in one process.

``python -m benchmarks.sources [--mib N] [--runs N]``. For CSV and JSON, in eight files and in one,
prints what it takes until all rows are read: by Spark, which throws them away (``noop``) or keeps
them as a statement needs them, and by this project, which checks every value and keeps them. The
last lines say what line breaks within quotes cost: ``multiLine`` for both, and without for both.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import time
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from pathlib import Path

import pyarrow.fs as pafs
from pyspark.sql import DataFrame, SparkSession

from benchmarks.comparison import session
from benchmarks.memory import PeakMemory
from spark_jobs.contract.request import FileSource
from spark_jobs.engine.runtime.lease import Lease
from spark_jobs.engine.source.landing import land, landing_of
from spark_jobs.engine.source.materialized import materialize
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.storage import WarehouseStorage

SCHEMA = (
    "id BIGINT, n INT, amount DECIMAL(10,2), price DOUBLE, day DATE, at TIMESTAMP, name STRING, "
    "note STRING, flag BOOLEAN, code STRING"
)
WORDS = ("alpha", "beta", "gamma delta", "épsilon", "zeta, eta", 'the "theta"', "iota")
FOLDER = Path(".bench/sources")
_BLOCK_ROWS = 50_000
_MIB = 1024 * 1024


class _NoTables:
    """A connector's place for sources: local files need none."""

    @staticmethod
    def locate(_uri: str) -> None:
        return None


def written(kind: str, files: int, size: int) -> Path:
    """Files of ``kind`` with about ``size`` bytes in all, made once."""
    folder = FOLDER / f"{kind}-{files}-{size // _MIB}"
    if folder.exists():
        return folder
    making = folder.with_suffix(".making")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True)
    rng = random.Random(17)
    for number in range(files):
        with (making / f"{number}.{kind}").open("w", encoding="utf-8") as file:
            if kind == "csv":
                file.write(",".join(column.split()[0] for column in SCHEMA.split(", ")) + "\n")
            first = number * 100_000_000
            while file.tell() < size // files:
                rows = range(first, first + _BLOCK_ROWS)
                file.write("".join(LINES[kind](i, rng) for i in rows))
                first += _BLOCK_ROWS
    return making.rename(folder)


def _csv(i: int, rng: random.Random) -> str:
    day = date(2020, 1, 1) + timedelta(days=i % 1500)
    name, note = (_quoted(rng.choice(WORDS)) for _ in range(2))
    return (
        f"{i},{i % 977},{i % 10**7 / 100:.2f},{rng.random() * 1000!r},{day},"
        f"{day}T12:{i % 60:02d}:00,{name},{note},{'true' if i % 3 else 'false'},C{i % 7919:05d}\n"
    )


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if "," in text or '"' in text else text


def _json(i: int, rng: random.Random) -> str:
    day = date(2020, 1, 1) + timedelta(days=i % 1500)
    row = {
        "id": i,
        "n": i % 977,
        "amount": i % 10**7 / 100,
        "price": rng.random() * 1000,
        "day": str(day),
        "at": f"{day}T12:{i % 60:02d}:00",
        "name": rng.choice(WORDS),
        "note": rng.choice(WORDS),
        "flag": bool(i % 3),
        "code": f"C{i % 7919:05d}",
    }
    return json.dumps(row, ensure_ascii=False) + "\n"


LINES: Mapping[str, Callable[[int, random.Random], str]] = {"csv": _csv, "json": _json}


class Bench:
    """Both sides, on one session."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        scratch = FOLDER / "warehouse"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        root = str(scratch.resolve())
        self.storage = WarehouseStorage(pafs.LocalFileSystem(), root, f"file://{root}")
        self.connector: Connector = _NoTables()  # type: ignore[assignment]
        self._runs = 0

    def frame(self, path: Path, kind: str, options: Mapping[str, str]) -> DataFrame:
        """The files by Spark's own reader."""
        return self.spark.read.schema(SCHEMA).options(**options).format(kind).load(str(path))

    def thrown_away(self, path: Path, kind: str, options: Mapping[str, str]) -> int:
        """Spark reads all rows and throws them away."""
        frame = self.frame(path, kind, options)
        frame.write.format("noop").mode("overwrite").save()
        return 0

    def kept(self, path: Path, kind: str, options: Mapping[str, str]) -> int:
        """Spark reads all rows, which are kept for the statement."""
        frame = self.frame(path, kind, options)
        return materialize(self.spark, frame, frame.columns, self.storage, self.scratch()).row_count

    def landed(self, path: Path, kind: str, options: Mapping[str, str]) -> int:
        """This project reads all rows and keeps them."""
        source = FileSource("s", str(path.resolve()), kind, options, SCHEMA)
        landing = landing_of(self.spark, source, self.connector)
        folder = f"{self.scratch()}/source"
        found = land(self.spark, landing, self.storage, folder, "bench", None)
        return found.row_count

    def scratch(self) -> str:
        """The scratch folder of a new run, below the warehouse."""
        self._runs += 1
        folder = f"run-{self._runs}"
        Lease(self.storage.filesystem, f"{self.storage.root}/{folder}").take()
        return folder

    def compare(
        self, label: str, path: Path, kind: str, options: Mapping[str, str], runs: int
    ) -> None:
        """Print the medians of all three, after one run of each that does not count."""
        sides = {"noop": self.thrown_away, "kept": self.kept, "here": self.landed}
        seconds: dict[str, list[float]] = {name: [] for name in sides}
        rows = {}
        with PeakMemory() as memory:
            for run in range(runs + 1):
                for name, side in sides.items():
                    started = time.perf_counter()
                    rows[name] = side(path, kind, options)
                    if run:
                        seconds[name].append(time.perf_counter() - started)
                    shutil.rmtree(f"{self.storage.root}/run-{self._runs}", ignore_errors=True)
        if rows["kept"] != rows["here"]:
            raise SystemExit(f"{label}: Spark has {rows['kept']} rows, this {rows['here']}")
        noop, kept, here = (statistics.median(each) for each in seconds.values())
        print(
            f"{label:<34} Spark, thrown away {noop:6.2f} s   kept {kept:6.2f} s"
            f"   here {here:6.2f} s   ratios {noop / here:.2f} {kept / here:.2f}"
            f"   largest worker {memory.largest_worker // _MIB} MiB",
            flush=True,
        )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--runs", type=int, default=3)
    parsed = parser.parse_args()
    bench = Bench(session())
    header = {"header": "true"}
    # Spark takes a doubled quote for one only when it is told to.
    quotes = {**header, "escape": '"'}
    size = parsed.mib * _MIB
    for files in (8, 1):
        path = written("csv", files, size)
        bench.compare(f"CSV, {files} files, defaults", path, "csv", header, parsed.runs)
        path = written("json", files, size)
        bench.compare(f"JSON, {files} files, defaults", path, "json", {}, parsed.runs)
    for files in (8, 1):
        path = written("csv", files, size)
        for lines in ("true", "false"):
            options = {**quotes, "multiLine": lines}
            label = f"CSV, {files} files, multiLine={lines}"
            bench.compare(label, path, "csv", options, parsed.runs)


if __name__ == "__main__":
    main()
