"""Statements that touch metadata only: seconds of ``execute()``, here and at an earlier commit.

``.venv/bin/python -m benchmarks.metadata_only [--base COMMIT] [--runs N]`` (the Airflow
environment). Creates a table, finds it there, deletes a partition and drops one, by ``airflow dags
test``, each side in turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from pathlib import Path

from benchmarks.airflow_runs import PROJECT, ROOT, Side, checkout, make_archive, run_of

DAG = """
import json
import os
import time
from pathlib import Path
from airflow.sdk import DAG
from airflow_provider_merge.operators.create_table import CreateTableOperator
from airflow_provider_merge.operators.drop_partitions import DropPartitionsOperator
from airflow_provider_merge.operators.truncate_table import TruncateTableOperator

NOTES = Path(os.environ["AIRFLOW_HOME"], "notes")

def note(context, *_):
    with NOTES.open("a") as file:
        file.write(json.dumps([context["ti"].task_id, time.time()]) + "\\n")

SQL = "CREATE TABLE bench.days (id BIGINT, day DATE) PARTITIONED BY (day)"
HOW = {"pre_execute": note, "post_execute": note}

with DAG("bench", schedule=None):
    new = CreateTableOperator(task_id="create", sql=SQL, **HOW)
    known = CreateTableOperator(task_id="create_existing", sql=SQL, **HOW)
    truncate = TruncateTableOperator(
        task_id="truncate", target="bench.days", partition={"day": "2026-01-31"}, **HOW)
    drop = DropPartitionsOperator(
        task_id="drop", target="bench.days", partitions=[{"day": "2026-01-31"}], if_exists=True,
        **HOW)
    new >> known >> truncate >> drop
"""


def seconds_of(side: Side, warehouse: Path) -> dict[str, float]:
    """The seconds of each task's ``execute()``."""
    with run_of(side, DAG, warehouse) as run:
        notes = [json.loads(line) for line in (run.home / "notes").read_text().splitlines()]
    times: dict[str, list[float]] = defaultdict(list)
    for task_id, moment in notes:
        times[task_id].append(moment)
    return {task_id: ended - began for task_id, (began, ended) in times.items()}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", help="a commit to measure beside this one")
    parser.add_argument("--runs", type=int, default=3)
    parsed = parser.parse_args()
    make_archive()
    sides = [Side("here", PROJECT, True)]
    if parsed.base:
        sides.append(Side(f"at {parsed.base}", checkout(parsed.base), True))
    warehouse = ROOT / "empty"
    warehouse.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for _ in range(parsed.runs):
        for side in sides:
            for task_id, seconds in seconds_of(side, warehouse).items():
                found[task_id][side.name].append(seconds)
    for task_id, by_side in found.items():
        medians = {name: statistics.median(each) for name, each in by_side.items()}
        first, *others = medians.values()
        ratios = "".join(f", ratio {other / first:.1f}" for other in others)
        print(
            task_id, " | ".join(f"{name} {each:.1f} s" for name, each in medians.items()) + ratios
        )


if __name__ == "__main__":
    main()
