"""One table, the DAG that merges into it, and everything a test wants to know of both."""

from __future__ import annotations

import json
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from airflow_provider_merge.metadata.paimon import PaimonSnapshots
from airflow_provider_merge.submit.processes import MARK, job_processes
from tests.live.server import Server
from tests.live.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
TASK = "merge"
ENDED = ("success", "failed")

# Run in the Spark environment.
_OPEN = """
import json, sys
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, TableName
from tests.connectors import tables
warehouse, name = sys.argv[1:]
connector, name = open_connector(CatalogSpec("paimon", warehouse), {}), TableName.parse(name)
"""
_CREATE = """
table = tables.create(connector, {"id": "BIGINT", "n": "BIGINT"}, name=name)
tables.append_with_pypaimon(table, [{"id": 1, "n": 100}, {"id": 2, "n": 200}])
"""
_ROWS = """
print(json.dumps({row["id"]: row["n"] for row in tables.read(connector, name)}))
"""

# Adding is not idempotent: a merge that is applied twice shows in the numbers.
_DAG = """
from datetime import datetime, timedelta
from airflow.sdk import DAG
from airflow_provider_merge.operators.clauses import when_matched, when_not_matched
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import sql_source

with DAG({dag_id!r}, schedule=None, start_date=datetime(2024, 1, 1), max_active_runs=2):
    MergeIntoOperator(
        task_id="merge",
        target="shop.{dag_id}",
        source=sql_source({source!r}, sources={{}}),
        on="t.id = s.id",
        when=[when_matched().update({{"n": {value!r}}}), when_not_matched().insert_all()],
        retries={retries},
        retry_delay=timedelta(seconds=1),
        conf={{
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
            "spark.ui.enabled": False,
            "spark.sql.shuffle.partitions": 2,
        }},
    )
"""
SOURCE = "SELECT id, n FROM VALUES (2, 20), (3, 30) AS v(id, n)"
BEFORE = {1: 100, 2: 200}
ONCE = {1: 100, 2: 220, 3: 30}
TWICE = {1: 100, 2: 240, 3: 60}
THRICE = {1: 100, 2: 260, 3: 90}


@dataclass(frozen=True)
class Orders:
    """The table ``shop.<dag_id>``, whose snapshot 1 holds ``BEFORE``, and its DAG."""

    server: Server
    warehouse: Path
    spark_env: Path
    dag_id: str

    def create(self, **dag: Any) -> None:
        """Make the table and the DAG."""
        self._python(_CREATE)
        self.write_dag(**dag)

    def write_dag(
        self, *, retries: int = 0, source: str = SOURCE, value: str = "t.n + s.n"
    ) -> None:
        """Make or change the DAG: each run adds the source's numbers to the table's."""
        text = _DAG.format(dag_id=self.dag_id, retries=retries, source=source, value=value)
        self.server.add_dag(self.dag_id, text)

    def rows(self) -> dict[int, int]:
        """``n`` by ``id``, as pypaimon reads them."""
        document = json.loads(self._python(_ROWS).splitlines()[-1])
        return {int(key): value for key, value in document.items()}

    def snapshots(self) -> list[int]:
        """The ids of all snapshots."""
        return PaimonSnapshots(str(self.folder)).ids()

    def operation_ids(self) -> list[str]:
        """The operation of every snapshot that a merge made, oldest first."""
        found = list(PaimonSnapshots(str(self.folder)).newest_first())[::-1]
        ids = [each.properties.get("merge.operation-id") for each in found]
        return [each for each in ids if each is not None]

    @property
    def folder(self) -> Path:
        """Where the table lies."""
        return self.warehouse / "shop.db" / self.dag_id

    @property
    def operations(self) -> Path:
        """Where jobs store their results."""
        return self.warehouse / "_operations"

    def result_file(self, operation_id: str) -> Path:
        """Where the job stores its result."""
        return self.operations / f"{operation_id}.json"

    def trigger(self, run_id: str) -> None:
        """Start a run."""
        self.server.client.trigger(self.dag_id, run_id)

    def task(self, run_id: str) -> dict[str, Any]:
        """The run's only task."""
        return self.server.client.task(self.dag_id, run_id, TASK)

    def ended(self, run_id: str) -> str:
        """Wait for the end of a run; its state."""
        client = self.server.client

        def state() -> str:
            found = client.run_state(self.dag_id, run_id)
            return found if found in ENDED else ""

        return wait_for(f"the end of {self.dag_id}, {run_id}", state)

    def xcom(self, run_id: str) -> dict[str, Any]:
        """What the task returned."""
        return self.server.client.xcom(self.dag_id, run_id, TASK)

    def event_snapshots(self) -> list[int]:
        """The snapshot id of every asset event, oldest first."""
        extras = self.server.client.asset_extras(self.dag_id)
        return [extra["snapshot_id"] for extra in extras]

    def log(self, run_id: str, try_number: int = 1) -> str:
        """The log of a try."""
        return self.server.client.log(self.dag_id, run_id, TASK, try_number)

    def story(self) -> str:
        """Snapshots, and every run with the logs of its tries: what to read when a test failed."""
        lines = [f"{self.dag_id}: snapshots {self.snapshots()}"]
        for run_id in self.server.client.runs(self.dag_id):
            task = self.task(run_id)
            lines.append(f"--- run {run_id}: {task['state']}, try {task['try_number']}")
            for number in range(1, task["try_number"] + 1):
                lines += [f"--- try {number}", self.log(run_id, number)]
        return "\n".join(lines)

    def operation_under_way(self) -> str:
        """Wait until a job has pinned and guarded its base snapshot; its operation id.

        The guard is made before the first data file, seconds before the snapshot.
        """

        def guarded() -> str:
            found = [each for each in self.jobs() if self._guard(each).exists()]
            return found[0] if found else ""

        return wait_for(f"a merge into {self.dag_id}", guarded, every=0.1)

    def driver_under_way(self) -> str:
        """Wait until a job's Python driver runs; the operation id."""

        def running() -> str:
            for operation_id, job in self.jobs().items():
                if any(process.name().startswith("python") for process in job):
                    return operation_id
            return ""

        return wait_for(f"a driver of {self.dag_id}", running, every=0.1)

    def jobs(self) -> dict[str, list[psutil.Process]]:
        """The living processes of this server's jobs by operation id."""
        found: dict[str, list[psutil.Process]] = {}
        for process in self.server.processes():
            with suppress(psutil.Error, OSError):
                operation_id = process.environ().get(MARK)
                if operation_id:
                    found.setdefault(operation_id, []).append(process)
        return found

    def processes(self, operation_id: str) -> list[psutil.Process]:
        """The living processes of a job."""
        return list(job_processes(operation_id))

    def _guard(self, operation_id: str) -> Path:
        return self.folder / "consumer" / f"consumer-merge-{operation_id}"

    def _python(self, code: str) -> str:
        arguments = [str(self.warehouse), f"shop.{self.dag_id}"]
        done = subprocess.run(
            [self.spark_env / "bin" / "python", "-c", _OPEN + code, *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout
