"""A table of a live server, and everything a test wants to know of it and of the jobs on it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from airflow_provider_merge.metadata.paimon.snapshots import PaimonSnapshots
from airflow_provider_merge.submit.processes import OPERATION, job_processes
from tests.live.server import Server
from tests.live.spark_python import SparkPython
from tests.support.waiting import wait_for

# Run in the Spark environment.
_OPEN = """
import json, sys
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, TableName
from tests.support import paimon_tables as tables
warehouse, name = sys.argv[1:]
connector, name = open_connector(CatalogSpec("paimon", warehouse), {}), TableName.parse(name)
"""


@dataclass(frozen=True)
class Table:
    """The table ``shop.<name>``."""

    server: Server
    warehouse: Path
    spark_python: SparkPython
    name: str

    def snapshots(self) -> list[int]:
        """The ids of all snapshots."""
        return PaimonSnapshots(str(self.folder)).ids()

    def operation_ids(self) -> list[str]:
        """The operation of every snapshot that a job made, oldest first."""
        found = list(PaimonSnapshots(str(self.folder)).newest_first())[::-1]
        ids = [each.properties.get("merge.operation-id") for each in found]
        return [each for each in ids if each is not None]

    @property
    def folder(self) -> Path:
        """Where the table lies."""
        return self.warehouse / "shop.db" / self.name

    @property
    def operations(self) -> Path:
        """Where jobs store their results."""
        return self.warehouse / "_operations"

    def result_file(self, operation_id: str) -> Path:
        """Where the job stores its result."""
        return self.operations / f"{operation_id}.json"

    def story(self, dag_id: str) -> str:
        """Snapshots, and every run with the logs of its tries: what to read when a test failed."""
        client = self.server.client
        lines = [f"{self.name}: snapshots {self.snapshots()}"]
        for run_id in client.runs(dag_id):
            for task in client.tasks(dag_id, run_id):
                name, state, tries = task["task_id"], task["state"], task["try_number"]
                index = task["map_index"]
                lines.append(f"--- run {run_id} of {dag_id}, {name} {index}: {state}, try {tries}")
                for number in range(1, tries + 1):
                    log = client.log(dag_id, run_id, name, number, index)
                    lines += [f"--- try {number}", log]
        return "\n".join(lines)

    def operation_under_way(self) -> str:
        """Wait until a job has pinned and guarded its base snapshot; its operation id.

        The guard is made before the first data file, seconds before the snapshot.
        """

        def guarded() -> str:
            found = [each for each in self.jobs() if self._guard(each).exists()]
            return found[0] if found else ""

        return wait_for(f"a job on {self.name}", guarded, every=0.1)

    def driver_under_way(self) -> str:
        """Wait until a job's Python driver runs; the operation id."""

        def running() -> str:
            found = [each for each, job in self.jobs().items() if any(map(is_python, job))]
            return found[0] if found else ""

        return wait_for(f"a driver of {self.name}", running, every=0.1)

    def jobs(self) -> dict[str, list[psutil.Process]]:
        """The living processes of this server's jobs by operation id."""
        found: dict[str, list[psutil.Process]] = {}
        for process in self.server.processes():
            with suppress(psutil.Error, OSError):
                operation_id = process.environ().get(OPERATION)
                if operation_id:
                    found.setdefault(operation_id, []).append(process)
        return found

    def processes(self, operation_id: str) -> list[psutil.Process]:
        """The living processes of a job."""
        return list(job_processes({OPERATION: operation_id}))

    def python(self, code: str) -> str:
        """Run code in the Spark environment; it knows ``connector``, ``name`` and ``tables``."""
        return self.spark_python.run(_OPEN + code, str(self.warehouse), f"shop.{self.name}")

    def _guard(self, operation_id: str) -> Path:
        return self.folder / "consumer" / f"consumer-merge-{operation_id}"


def is_python(process: psutil.Process) -> bool:
    """Whether it is a driver or a Python worker, and lives."""
    try:
        return str(process.name()).startswith("python")
    except psutil.NoSuchProcess:
        return False
