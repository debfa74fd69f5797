"""Keys of an object store are in no artefact of a run: argument, environment, log, event, file.

What is planted in the open is found by the same search, so the search can find something.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import threading
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from tests.support.gateway import gateway_program_or_skip, serving

pytestmark = pytest.mark.slow

ACCESS_KEY, SECRET_KEY = "PLANTEDACCESSKEY", "planted-secret-key"
OPEN = "planted_in_the_open"

DAG = """
from datetime import datetime
import os
from airflow.sdk import DAG
from airflow_provider_merge.operators.clauses import when_matched, when_not_matched
from airflow_provider_merge.operators.create_table import CreateTableOperator, column
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import file_source

CONF = {
    "spark.eventLog.enabled": True,
    "spark.eventLog.compress": False,
    "spark.eventLog.dir": os.environ["LAKE"] + "/events",
}

with DAG("keys_on_s3", schedule=None, start_date=datetime(2024, 1, 1),
         default_args={"target": "shop.planted_in_the_open", "conf": CONF,
                       "catalog_conn_id": "s3_lake"}):
    create = CreateTableOperator(
        task_id="create", columns=[column("id", "BIGINT"), column("state", "STRING")]
    )
    merges = [
        MergeIntoOperator(
            task_id=f"merge_{number}",
            source=file_source(
                f"{os.environ['LAKE']}/planted_in_the_open_{number}.csv",
                "csv",
                schema="id BIGINT, state STRING",
            ),
            on="t.id = s.id",
            when=[
                when_matched().update({"state": "concat(s.state, ' planted_in_the_open')"}),
                when_not_matched().insert_all(),
            ],
        )
        for number in range(2)
    ]
    create >> merges[0] >> merges[1]
"""


@dataclass
class ProcessWatch:
    """Looks at arguments and environments of all processes until it is stopped."""

    found: set[str] = field(default_factory=set)
    jvms: set[int] = field(default_factory=set)
    stopped: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self.stopped.wait(1):
            for process in psutil.process_iter():
                self._look_at(process)

    def _look_at(self, process: psutil.Process) -> None:
        try:
            arguments, variables = process.cmdline(), process.environ()
        except (psutil.Error, OSError):
            return
        if "versitygw" in "".join(arguments[:1]):
            return
        if any("SparkSubmit" in argument for argument in arguments):
            self.jvms.add(process.pid)
        texts = [*arguments, *(f"{name}={value}" for name, value in variables.items())]
        self.found |= {text for text in texts if ACCESS_KEY in text or SECRET_KEY in text}


def holding(folder: Path, text: str) -> list[str]:
    """The files below a folder that hold a text."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(str(path) for path in files if text.encode() in path.read_bytes())


def without_connections(database: Path) -> None:
    """Empty the table in which Airflow keeps connections, secrets encrypted."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("DELETE FROM connection")
        connection.commit()
        connection.execute("VACUUM")


def test_keys_are_in_no_artefact_of_a_run(lake, tmp_path):
    program = gateway_program_or_skip()
    (tmp_path / "data" / "lake").mkdir(parents=True)
    (lake.folder / "events").mkdir()
    for number, ids in enumerate([(1, 2), (1, 1)]):
        text = "".join(f"{each},new\n" for each in ids)
        (lake.folder / f"planted_in_the_open_{number}.csv").write_text(text)
    lake.add_dag("keys_on_s3", DAG)
    watch = ProcessWatch()
    thread = threading.Thread(target=watch.run)
    with serving(program, tmp_path, ACCESS_KEY, SECRET_KEY) as endpoint:
        document = {
            "conn_type": "paimon",
            "login": ACCESS_KEY,
            "password": SECRET_KEY,
            "extra": {"warehouse": "s3://lake/wh", "endpoint": endpoint},
        }
        # Airflow's audit log keeps the arguments of its commands.
        file = tmp_path / "connections.json"
        file.write_text(json.dumps({"s3_lake": document}))
        added = lake.airflow("connections", "import", str(file))
        assert added.returncode == 0, added.stdout
        thread.start()
        try:
            done = lake.airflow("dags", "test", "keys_on_s3")
        finally:
            watch.stopped.set()
            thread.join()

    log = lake.folder / "dags-test.log"
    log.write_text(done.stdout)
    results = [
        json.loads(path.read_text())
        for path in (tmp_path / "data/lake/wh/_operations").glob("*.json")
    ]
    statuses = sorted(each["status"] for each in results)
    assert statuses == ["committed", "committed", "failed"], done.stdout[-8000:]
    everything = tmp_path / "everything"
    shutil.copytree(lake.folder, everything / "airflow", ignore=shutil.ignore_patterns("*.pyc"))
    shutil.copytree(tmp_path / "data", everything / "warehouse")
    without_connections(everything / "airflow/airflow/airflow.db")

    in_the_open = holding(everything, OPEN)
    for part in ("airflow/events", "airflow/dags-test.log", "warehouse/lake/wh"):
        assert any(part in path for path in in_the_open), part
    assert holding(everything, SECRET_KEY) == []
    assert holding(everything, ACCESS_KEY) == []
    assert watch.jvms, "no Spark was seen"
    assert watch.found == set()
