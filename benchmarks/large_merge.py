"""Sources that no task can hold: many keys, and one key for most of a source.

``python -m benchmarks.large_merge [--rows 200000000] [--keys 50000000] [--heap 6g]``, in
``.venv-spark``: updates as many rows, scattered, in files of two million. ``python -m
benchmarks.large_merge --skewed [--rows 10000000] [--keys 5000000]``: new rows from a source in
which 90 % of the rows have one key, and from one whose keys are all different. Prints seconds by
phase, the memory of JVM and Python, and how many bytes went through shuffles and were spilled.
"""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path
from typing import Final

import duckdb
from pyspark.sql import SparkSession

from airflow_provider_merge.sql.parser import parse_statement
from benchmarks.comparison import ROOT, append, copy_of, session, timed
from benchmarks.natives.data import STEP, made
from benchmarks.natives.usage import Peak
from spark_jobs.contract.request import FileSource, TableName

FOLDER: Final = ROOT / "large"
_NAME: Final = TableName("bench", "t")
_FILE_ROWS: Final = 2_000_000
_UPDATE: Final = "WHEN MATCHED THEN UPDATE SET v = s.v"
_INSERT: Final = "WHEN NOT MATCHED THEN INSERT *"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--skewed", action="store_true")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--keys", type=int)
    parser.add_argument("--heap", default="6g")
    parsed = parser.parse_args()
    rows = parsed.rows or (10_000_000 if parsed.skewed else 200_000_000)
    keys = parsed.keys or (5_000_000 if parsed.skewed else 50_000_000)
    master = _master(rows)
    spark = session(parsed.heap, {"spark.sql.parquet.compression.codec": "zstd"})
    if parsed.skewed:
        new_ids = f"{rows} + i"
        sources = {"all": new_ids, "one key": f"IF(i % 10 > 0, {rows}, {new_ids})"}
        # The first round warms up.
        for name, ids in [*sources.items()] * 2:
            _measure(spark, master, name, _source(f"{name}-{rows}-{keys}", ids, keys), _INSERT)
    else:
        source = _source(f"scattered-{rows}-{keys}", f"(i * {STEP}) % {rows}", keys)
        _measure(spark, master, "scattered", source, _UPDATE)
    spark.stop()


def _master(rows: int) -> Path:
    """The warehouse with the table, written unless it is there."""

    def write(warehouse: Path) -> None:
        for start in range(0, rows, _FILE_ROWS):
            ids = f"range({start}, {min(start + _FILE_ROWS, rows)}) r(i)"
            query = "SELECT i AS id, (hash(i) % 1000000)::INT AS v, 'note ' || i % 5000 AS note"
            append(warehouse, _NAME, duckdb.sql(f"{query} FROM {ids}").to_arrow_table())

    return made(FOLDER / f"table-{rows}", write)


def _source(name: str, ids: str, count: int) -> Path:
    """A parquet file with ``count`` rows, written unless it is there."""
    path = FOLDER / f"{name.replace(' ', '-')}.parquet"
    if not path.exists():
        query = f"SELECT {ids} AS id, (i % 77)::INT AS v, 'new' AS note FROM range({count}) r(i)"
        duckdb.sql(f"COPY ({query}) TO '{path}' (FORMAT parquet, COMPRESSION zstd)")
    return path


def _measure(spark: SparkSession, master: Path, name: str, source: Path, clause: str) -> None:
    warehouse = copy_of(master)
    text = f"MERGE INTO {_NAME} t USING s ON t.id = s.id {clause}"
    statement = parse_statement(text, ["s"]).statement
    with Peak(os.getpid()) as peak:
        seconds, result = timed(
            spark, warehouse, _NAME, statement, FileSource("s", str(source), "parquet")
        )
    metrics = result.metrics
    shuffled, spilled = _stage_bytes(spark)
    print(
        f"{name}: {seconds:.1f} s, {metrics.plan}, {dict(metrics.seconds)}, "
        f"{metrics.updated:,} updated, {metrics.inserted:,} inserted, "
        f"JVM {peak.java / 2**30:.1f} GiB, Python {peak.python / 2**30:.1f} GiB, together "
        f"{peak.together / 2**30:.1f} GiB, shuffled {shuffled / 2**20:,.0f} MiB, "
        f"spilled {spilled / 2**20:,.0f} MiB so far",
        flush=True,
    )
    shutil.rmtree(warehouse)


def _stage_bytes(spark: SparkSession) -> tuple[int, int]:
    """Bytes that all stages so far wrote to shuffles, and spilled to disk."""
    store = spark._jsparkSession.sparkContext().statusStore()
    every, quantiles = spark._jvm.java.util.ArrayList(), getattr(store, "stageList$default$4")()
    found = store.stageList(every, False, False, quantiles, every)
    stages = [found.apply(number) for number in range(found.size())]
    shuffled = sum(stage.shuffleWriteBytes() for stage in stages)
    spilled = sum(stage.diskBytesSpilled() for stage in stages)
    return shuffled, spilled


if __name__ == "__main__":
    main()
