"""Small merges into many tables: one Spark application for all, and one for each, wall and CPU.

``.venv/bin/python -m benchmarks.statements [--tables N]`` (the Airflow environment). Each table has
50,000 rows in one file, each merge 100 source rows. One DAG has a ``MergeIntoOperator`` for each
table, one after another; the other a ``StatementsOperator``, in order and with two at once.
"""

from __future__ import annotations

import argparse
import subprocess
import textwrap
from pathlib import Path

from benchmarks.airflow_runs import PROJECT, ROOT, SPARK_ENV, Side, make_archive, run_of

_HEADER = """
from airflow.sdk import DAG
from airflow_provider_merge.operators.clauses import when_matched, when_not_matched
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import sql_source
from airflow_provider_merge.operators.statement_list import merge_into
from airflow_provider_merge.operators.statements import StatementsOperator

def parts(number):
    return dict(
        target=f"bench.t{number}",
        source=sql_source("SELECT id * 600 AS id, 'new' AS v FROM range(100)", sources={}),
        on="t.id = s.id",
        when=[when_matched().update({"v": "s.v"}), when_not_matched().insert_all()],
    )

with DAG("bench", schedule=None):
"""
_EACH = """
previous = None
for number in range(TABLES):
    task = MergeIntoOperator(task_id=f"merge_{number}", **parts(number))
    if previous:
        previous >> task
    previous = task
"""
_ONE = """
StatementsOperator(
    task_id="merge",
    statements=[merge_into(f"merge_{number}", **parts(number)) for number in range(TABLES)],
    max_parallel=PARALLEL,
)
"""
_PREPARE = """
import pyarrow as pa
from benchmarks.comparison import append
from pathlib import Path
from spark_jobs.contract.request import TableName
for number in range({tables}):
    rows = pa.table({{"id": pa.array(range(50_000), pa.int64()), "v": ["old"] * 50_000}})
    append(Path({folder!r}), TableName("bench", f"t{{number}}"), rows)
"""


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=20)
    tables = parser.parse_args().tables
    warehouse = _prepared(tables)
    make_archive()
    side = Side("here", PROJECT, True)
    ways = {
        "one application": _dag(_ONE, tables, 1),
        "one application, two at once": _dag(_ONE, tables, 2),
        f"{tables} applications": _dag(_EACH, tables, 1),
    }
    taken = {}
    for name, dag in ways.items():
        with run_of(side, dag, warehouse) as run:
            taken[name] = (run.ended - run.started, run.cpu.seconds)
        wall, cpu = taken[name]
        print(f"{name}: {wall:.1f} s, {cpu:.1f} s of CPU")
    *together, (wall, cpu) = taken.values()
    for name, one in zip(taken, together, strict=False):
        print(f"{name}: {wall / one[0]:.1f} times as fast, {cpu / one[1]:.1f} times less CPU")


def _dag(body: str, tables: int, parallel: int) -> str:
    filled = body.replace("TABLES", str(tables)).replace("PARALLEL", str(parallel))
    return _HEADER + textwrap.indent(filled, "    ")


def _prepared(tables: int) -> Path:
    warehouse = ROOT / f"small-{tables}"
    if not warehouse.exists():
        making = warehouse.with_suffix(".making")
        code = _PREPARE.format(tables=tables, folder=str(making))
        subprocess.run([SPARK_ENV / "bin" / "python", "-c", code], check=True)
        making.rename(warehouse)
    return warehouse


if __name__ == "__main__":
    main()
