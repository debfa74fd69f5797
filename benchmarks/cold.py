"""Cold time of one merge: from the operator's start to the snapshot, split into its parts.

``.venv/bin/python -m benchmarks.cold`` (the Airflow environment; ``python -m benchmarks.merge`` has
prepared the table). 1,000 source rows into the 10 M table, by a real ``airflow dags test`` and a
real spark-submit. Spark's event log tells when the application started and how long stages took.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(".bench").absolute()
SPARK_ENV = Path(".venv-spark").absolute()
DAG = """
from airflow.sdk import DAG
from airflow_provider_merge.operators.clauses import when_matched, when_not_matched
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import sql_source, file_source

with DAG("cold", schedule=None):
    MergeIntoOperator(
        task_id="merge",
        target="bench.lineitem",
        source=sql_source(
            "SELECT * FROM changes ORDER BY id % 997, id LIMIT 1000",
            sources={{"changes": file_source("{changes}", "parquet")}},
        ),
        on="t.id = s.id",
        when=[
            when_matched("s.del").delete(),
            when_matched().update({{"price": "s.price", "comment": "s.comment"}}),
            when_not_matched().insert({{"id": "s.id", "price": "s.price", "comment": "s.comment"}}),
        ],
        conf={{
            "spark.eventLog.enabled": True,
            "spark.eventLog.dir": "file://{events}",
            "spark.eventLog.rolling.enabled": False,
            "spark.eventLog.compress": False,
        }},
        spark_env="{spark_env}",
    )
"""


def environment(home: Path, warehouse: Path) -> dict[str, str]:
    """Variables of a private Airflow with both connections."""
    connection = {"conn_type": "paimon", "extra": {"warehouse": str(warehouse)}}
    return {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW_CONN_PAIMON_DEFAULT": json.dumps(connection),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
    }


def run_once(changes: Path, master: Path) -> dict[str, float]:
    """Seconds of each part of one cold merge, in their order."""
    home = ROOT / f"cold-{uuid.uuid4().hex}"
    warehouse, events = home / "warehouse", home / "events"
    for folder in (home / "dags", events):
        folder.mkdir(parents=True)
    shutil.copytree(master, warehouse)
    dag = DAG.format(changes=changes, events=events, spark_env=SPARK_ENV)
    (home / "dags" / "cold.py").write_text(dag)
    airflow = [str(Path(sys.executable).parent / "airflow")]
    variables = environment(home, warehouse)
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    subprocess.run([*airflow, "db", "migrate"], env=variables, check=True, **output)
    subprocess.run([*airflow, "dags", "reserialize"], env=variables, check=True, **output)
    launched = time.time()
    done = subprocess.run([*airflow, "dags", "test", "cold"], env=variables, check=False, **output)
    if done.returncode:
        raise SystemExit(done.stdout[-3000:])
    parts = split(launched, home, warehouse, events)
    shutil.rmtree(home)
    return parts


def split(launched: float, home: Path, warehouse: Path, events: Path) -> dict[str, float]:
    """The parts, from Airflow's database, Spark's event log, the result and the snapshot."""
    with sqlite3.connect(home / "airflow.db") as database:
        (text,) = database.execute("SELECT start_date FROM task_instance").fetchone()
    operator_start = datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    (result_path,) = (warehouse / "_operations").glob("*.json")
    seconds = json.loads(result_path.read_text())["metrics"]["seconds"]
    log = [json.loads(line) for path in events.rglob("*") if path.is_file()
           for line in path.read_text().splitlines()]  # fmt: skip
    application = next(
        each["Timestamp"] / 1000 for each in log if each["Event"] == "SparkListenerApplicationStart"
    )
    snapshot = max(
        (json.loads(path.read_text()) for path in warehouse.rglob("snapshot-*")),
        key=lambda each: int(each["id"]),
    )
    sink = sink_seconds(log)
    return {
        "(airflow dags test until the operator starts)": operator_start - launched,
        "spark-submit until the application starts": application - operator_start,
        "session": seconds["session"],
        "analyze": seconds["analyze"],
        "plan and prune": seconds["plan"] + seconds["prune"],
        "source": seconds["source"],
        "join": seconds["write"] - sink,
        "sink": sink,
        "publish": seconds["commit"],
        "operator start to snapshot": snapshot["timeMillis"] / 1000 - operator_start,
    }


def sink_seconds(log: list[dict[str, object]]) -> float:
    """Wall time of the last stage that ran before the commit: that of the sink tasks."""
    stages = [each["Stage Info"] for each in log if each["Event"] == "SparkListenerStageCompleted"]
    last = max(stages, key=lambda stage: stage["Completion Time"])  # type: ignore[index]
    return (last["Completion Time"] - last["Submission Time"]) / 1000  # type: ignore[index]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--changes", type=int, default=120_000)
    parser.add_argument("--runs", type=int, default=3)
    parsed = parser.parse_args()
    master = ROOT / f"master-{parsed.rows}"
    changes = ROOT / f"changes-{parsed.rows}-{parsed.changes}.parquet"
    for number in range(parsed.runs):
        print(f"run {number + 1}")
        for name, value in run_once(changes, master).items():
            print(f"  {name:<46} {value:6.2f} s")


if __name__ == "__main__":
    main()
