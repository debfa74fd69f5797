"""Statements with thousands of constants, terms, columns or partitions, beside plain Spark.

``.venv-spark/bin/python -m benchmarks.long_statements [--runs N] [--only WORD] [--cold]``. The
table has 100,000 rows in one file, so nearly all time goes into the text; one of 2,000 columns has
1,000 rows, and one of 10,000 partitions 10 rows in each, whose folders plain Spark lists in each
run. Plain Spark filters, joins or inserts with the same text, and writes Parquet files without a
commit. The first run of a
side warms the JVM up and does not count. With ``--cold`` it counts alone, each in a new process.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from airflow_provider_merge.sql.parser import parse_statement
from benchmarks.comparison import ROOT, append, copy_of, files_of, session, timed
from spark_jobs.contract.request import TableName

_TABLE = TableName("bench", "t")
_WIDE = TableName("bench", "wide")
_PARTS = TableName("bench", "parts")
_ROWS = 100_000
_COLUMNS = 2_000
_PARTITIONS = 10_000
_SOURCE = "(SELECT id * 7 AS id, 'new' AS v FROM range(1000))"


@dataclass(frozen=True)
class Work:
    """A statement on ``target``, and what plain Spark does instead, as a query over its name."""

    name: str
    statement: str
    plain: str
    target: TableName = _TABLE


def _works() -> Iterator[Work]:
    constants = ", ".join(str(number * 5) for number in range(20_000))
    texts = ", ".join(f"'v{number * 5}'" for number in range(20_000))
    terms = " OR ".join(f"(id = {number} AND v <> 'x{number}')" for number in range(1_000))
    joined = " AND ".join(f"id <> {number}" for number in range(1_000))
    branches = " ".join(f"WHEN id = {number} THEN 'n{number}'" for number in range(1_000))
    rows = ", ".join(f"({number}, 'v{number}')" for number in range(10_000))
    for name, condition in (
        ("of one term", "id % 5 = 0"),
        ("IN of 20,000 numbers", f"id IN ({constants})"),
        ("NOT IN of 20,000 numbers", f"id NOT IN ({constants})"),
        ("IN of 20,000 texts", f"v IN ({texts})"),
        ("OR of 1,000 terms", terms),
        ("AND of 1,000 terms", joined),
    ):
        kept = f"SELECT * FROM t WHERE NOT coalesce(({condition}), false)"
        yield Work(f"DELETE, {name}", f"DELETE FROM {_TABLE} WHERE {condition}", kept)
    case = f"CASE {branches} ELSE v END"
    yield Work(
        "UPDATE, CASE of 1,000 branches",
        f"UPDATE {_TABLE} SET v = {case}",
        f"SELECT id, {case} AS v FROM t",
    )
    merge = f"MERGE INTO {_TABLE} t USING {_SOURCE} s ON t.id = s.id"
    join = f"SELECT t.id, %s AS v FROM t LEFT JOIN {_SOURCE} s ON t.id = s.id"
    yield Work(
        "MERGE, IN of 20,000 numbers in ON",
        f"{merge} AND t.id IN ({constants}) WHEN MATCHED THEN UPDATE SET v = s.v",
        f"{join % 'coalesce(s.v, t.v)'} AND t.id IN ({constants})",
    )
    yield Work(
        "MERGE, IN of 20,000 numbers in a clause",
        f"{merge} WHEN MATCHED AND t.id IN ({constants}) THEN UPDATE SET v = s.v",
        join % f"IF(t.id IN ({constants}) AND s.v IS NOT NULL, s.v, t.v)",
    )
    yield Work(
        "INSERT, 10,000 rows of VALUES",
        f"INSERT INTO {_TABLE} VALUES {rows}",
        f"SELECT * FROM VALUES {rows} AS s(id, v)",
    )
    yield from _large()


def _large() -> Iterator[Work]:
    """Works of many clauses, columns or partitions."""
    join = f"SELECT t.id, %s AS v FROM t LEFT JOIN {_SOURCE} s ON t.id = s.id"
    clauses = " ".join(
        f"WHEN MATCHED AND t.id % 200 = {number} THEN UPDATE SET v = concat(s.v, '{number}')"
        for number in range(200)
    )
    cases = " ".join(
        f"WHEN t.id % 200 = {number} THEN concat(s.v, '{number}')" for number in range(200)
    )
    yield Work(
        "MERGE, 200 clauses",
        f"MERGE INTO {_TABLE} t USING {_SOURCE} s ON t.id = s.id {clauses}",
        join % f"CASE WHEN s.id IS NULL THEN t.v {cases} ELSE t.v END",
    )
    names = [f"c{number}" for number in range(1, _COLUMNS)]
    kept = ", ".join(
        f"IF(id = 7, 'x', {name}) AS {name}" if name == "c5" else name for name in names
    )
    yield Work(
        "UPDATE, 2,000 columns",
        f"UPDATE {_WIDE} SET c5 = 'x' WHERE id = 7",
        f"SELECT id, {kept} FROM wide",
        _WIDE,
    )
    made = ", ".join(f"'new' AS {name}" for name in names)
    source = f"(SELECT id * 7 AS id, {made} FROM range(100))"
    merged = ", ".join(f"IF(s.id IS NULL, t.{name}, s.{name}) AS {name}" for name in names)
    yield Work(
        "MERGE, SET * of 2,000 columns",
        f"MERGE INTO {_WIDE} t USING {source} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *",
        f"SELECT t.id, {merged} FROM wide t LEFT JOIN {source} s ON t.id = s.id",
        _WIDE,
    )
    placed = f"(SELECT id * 7 AS id, 'new' AS v, id * 7 % {_PARTITIONS} AS p FROM range(100))"
    on = "t.id = s.id AND t.p = s.p"
    yield Work(
        "MERGE, 10,000 partitions",
        f"MERGE INTO {_PARTS} t USING {placed} s ON {on} WHEN MATCHED THEN UPDATE SET v = s.v",
        f"SELECT t.id, coalesce(s.v, t.v) AS v, t.p FROM parts t LEFT JOIN {placed} s ON {on}",
        _PARTS,
    )


@dataclass(frozen=True)
class Timed:
    """The seconds of a run, and when it ``ended``, in seconds of the epoch."""

    seconds: float
    ended: float


def _rows(target: TableName) -> tuple[pa.Table, tuple[str, ...]]:
    """The rows of a table, and its partition columns."""
    ids = list(range(1_000 if target == _WIDE else _ROWS))
    if target == _WIDE:
        texts = {f"c{number}": [f"v{number}"] * len(ids) for number in range(1, _COLUMNS)}
        return pa.table({"id": ids, **texts}), ()
    rows = pa.table({"id": ids, "v": [f"v{each}" for each in ids]})
    if target == _TABLE:
        return rows, ()
    return rows.append_column("p", pa.array([each % _PARTITIONS for each in ids])), ("p",)


def _master(target: TableName) -> Path:
    """A warehouse with a table, made once."""
    master = ROOT / f"long-{target.table}"
    if not master.exists():
        making = master.with_name(f"{master.name}-{uuid.uuid4().hex}")
        rows, keys = _rows(target)
        append(making, target, rows, keys)
        making.rename(master)
    return master


def _view(spark: SparkSession, target: TableName) -> None:
    """Let plain Spark know the files of a table, or list them if there are partitions."""
    if target == _PARTS:
        folder = _master(target) / f"{target.database}.db" / target.table
        reader = spark.read.schema("id BIGINT, v STRING, p BIGINT")
        found = reader.option("basePath", str(folder)).parquet(f"{folder}/p=*")
    else:
        found = spark.read.parquet(*files_of(_master(target), target))
    found.createOrReplaceTempView(target.table)


def _plain(spark: SparkSession, work: Work) -> Timed:
    out = ROOT / f"plain-{uuid.uuid4().hex}"
    started = time.perf_counter()
    if work.target == _PARTS:
        _view(spark, work.target)
    spark.sql(work.plain).write.parquet(str(out))
    result = Timed(time.perf_counter() - started, time.time())
    shutil.rmtree(out)
    return result


def _ours(spark: SparkSession, work: Work) -> Timed:
    parsed = parse_statement(work.statement)
    copy = copy_of(_master(work.target))
    seconds, _ = timed(spark, copy, work.target, parsed.statement, *parsed.sources)
    result = Timed(seconds, time.time())
    shutil.rmtree(copy)
    return result


def _measured(spark: SparkSession, run: Callable[[], Timed]) -> tuple[float, float]:
    """The seconds of a run, and those before Spark's first job, which reads the first row."""
    jobs = _jobs(spark)
    run_time = run()
    first = min(began for number, began in _jobs(spark).items() if number not in jobs)
    return run_time.seconds, first - (run_time.ended - run_time.seconds)


def _jobs(spark: SparkSession) -> dict[int, float]:
    """The seconds of the epoch at which each of Spark's jobs began."""
    context = spark.sparkContext._jsc.sc()  # noqa: SLF001 - no public way
    context.listenerBus().waitUntilEmpty()
    found = context.statusStore().jobsList(None)
    jobs = [found.apply(index) for index in range(found.size())]
    return {each.jobId(): each.submissionTime().get().getTime() / 1000 for each in jobs}


def _medians(runs: int, *sides: Callable[[], tuple[float, float]]) -> list[tuple[float, ...]]:
    """The medians of what each side measures; sides take turns."""
    measured = [[side() for side in sides] for _ in range(runs + 1)][1:]
    return [
        tuple(map(statistics.median, zip(*figures, strict=True)))
        for figures in zip(*measured, strict=True)
    ]


def _in_new_process(runs: int, name: str, side: str) -> tuple[float, ...]:
    """The medians of the first run of ``side`` in new processes."""
    command = [sys.executable, "-m", "benchmarks.long_statements", "--only", name, "--first", side]
    figures = []
    for _ in range(runs):
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        figures.append(tuple(map(float, done.stdout.splitlines()[-1].split())))
    return tuple(map(statistics.median, zip(*figures, strict=True)))


def main() -> None:
    """Print the seconds of both sides and their ratio, and those of the parser in Airflow."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--only", default="", help="only works whose name has this word")
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--first", choices=["plain", "ours"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    works = [work for work in _works() if arguments.only in work.name]
    if arguments.cold:
        for work in works:
            sides = [_in_new_process(arguments.runs, work.name, s) for s in ("plain", "ours")]
            _show(work, *sides)
        return
    # Spark would list folders in a job, which reads the first row of nothing.
    few = {"spark.sql.sources.parallelPartitionDiscovery.threshold": str(2 * _PARTITIONS)}
    spark = session("2g", {"spark.sql.ansi.enabled": "true", **few})
    for work in works:
        _view(spark, work.target)

        def plain(work: Work = work) -> tuple[float, float]:
            return _measured(spark, lambda: _plain(spark, work))

        def ours(work: Work = work) -> tuple[float, float]:
            return _measured(spark, lambda: _ours(spark, work))

        if arguments.first:
            print(*(plain if arguments.first == "plain" else ours)())
        else:
            _show(work, *_medians(arguments.runs, plain, ours))


def _show(work: Work, plain: tuple[float, ...], ours: tuple[float, ...]) -> None:
    started = time.perf_counter()
    parse_statement(work.statement)
    parsing = time.perf_counter() - started
    print(
        f"{work.name}: {ours[0]:.2f} s, plain Spark {plain[0]:.2f} s, ratio "
        f"{ours[0] / plain[0]:.2f}; before the first row {ours[1]:.2f} s, plain Spark "
        f"{plain[1]:.2f} s, ratio {ours[1] / plain[1]:.2f}; parsed in Airflow in "
        f"{parsing:.2f} s",
        flush=True,
    )


if __name__ == "__main__":
    main()
