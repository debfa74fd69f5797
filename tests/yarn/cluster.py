"""A YARN, a warehouse beside it, and tasks of this provider on both."""

from __future__ import annotations

import json
import os
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import requests
from airflow.sdk import DAG

from airflow_provider_merge.operators._shared.spark_job import SparkJobOperator
from airflow_provider_merge.submit.spark_environment import SparkEnvironment
from tests.airflow.contexts import context_of
from tests.judge.yarn_server import MEMORY, Yarn
from tests.support.paimon_metadata import TableFiles
from tests.support.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
FAULTS = ROOT / "tests" / "cluster" / "executor_python"
# Planted in the connection to the catalog.
PASSWORD = "hunter2-planted-on-yarn"
# Connections: with the ResourceManager's address, and without.
REACHABLE, SILENT = "yarn_reachable", "yarn_silent"
ENDED = ("FINISHED", "FAILED", "KILLED")
# Tests of a minute each, of which a run takes one.
TURNS = 14


@dataclass(frozen=True)
class Cluster:
    """``folder`` has the warehouse, the staging area and what tests leave."""

    yarn: Yarn
    folder: Path

    @property
    def warehouse(self) -> Path:
        return self.folder / "warehouse"

    @property
    def staging(self) -> Path:
        return self.folder / "staging"

    @property
    def environment(self) -> SparkEnvironment:
        """That of the driver and the executors."""
        folder = os.environ.get("MERGE_SPARK_ENV", str(ROOT / ".venv-spark"))
        return SparkEnvironment.at(folder, "MERGE_SPARK_ENV")

    def variables(self) -> dict[str, str]:
        """What a worker has in its environment."""
        extra = {"deploy-mode": "cluster"}
        address = {"yarn_resourcemanager_webapp_address": self.yarn.address}
        paimon = {"warehouse": str(self.warehouse), "options": {"custom.secret-key": PASSWORD}}
        connections = {
            "paimon_default": {"conn_type": "paimon", "extra": paimon},
            SILENT: {"conn_type": "spark", "host": "yarn", "extra": extra},
            REACHABLE: {"conn_type": "spark", "host": "yarn", "extra": {**extra, **address}},
        }
        return {
            "HADOOP_CONF_DIR": str(self.yarn.conf),
            "SPARK_CONF_DIR": str(ROOT / "tests" / "spark_conf"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "AIRFLOW__MERGE__SPARK_ENV": str(self.environment.python.parents[1]),
            **{f"AIRFLOW_CONN_{name.upper()}": json.dumps(each)
               for name, each in connections.items()},
        }  # fmt: skip

    def parameters(self, **conf: str) -> dict[str, Any]:
        """Of operators: small processes that find all on this machine."""
        python, home = self.environment.python, self.environment.spark_home
        settings = {
            "spark.pyspark.python": str(python),
            "spark.pyspark.driver.python": str(python),
            "spark.yarn.appMasterEnv.PYSPARK_PYTHON": str(python),
            "spark.yarn.jars": f"local:{home}/jars/*",
            "spark.yarn.stagingDir": self.staging.as_uri(),
            "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": "127.0.0.1",
            "spark.executorEnv.SPARK_LOCAL_IP": "127.0.0.1",
            "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            # Drivers do not wait for executors before they begin.
            "spark.scheduler.minRegisteredResourcesRatio": "0",
            "spark.driver.memoryOverhead": "256m",
            "spark.executor.memoryOverhead": "256m",
        }
        memory = {"driver_memory": "512m", "executor_memory": "512m"}
        return {**memory, "num_executors": 1, "executor_cores": 1, "conf": {**settings, **conf}}

    def table(self) -> TableFiles:
        """A new table, with the columns id and day."""
        return TableFiles(self.warehouse, f"t{uuid.uuid4().hex[:8]}").create()

    def rest(self, path: str) -> Any:
        """What the ResourceManager answers."""
        return self._send("GET", path)

    def applications(self, name: str) -> list[dict[str, Any]]:
        """Those of this name."""
        found = (self.rest("apps").get("apps") or {}).get("app", [])
        return [each for each in found if each["name"] == name]

    def application(self, application_id: str) -> dict[str, Any]:
        """What the ResourceManager tells of it."""
        found: dict[str, Any] = self.rest(f"apps/{application_id}")["app"]
        return found

    def ended(self, application_id: str) -> dict[str, Any]:
        """The same, once it has ended."""
        found = self.application(application_id)
        while found["state"] not in ENDED:
            found = wait_for("news", lambda: self.application(application_id), every=0.5)
        return found

    @contextmanager
    def full(self) -> Iterator[None]:
        """Nothing new can start meanwhile: an application that only sleeps has all memory."""
        application_id = str(self._send("POST", "apps/new-application")["application-id"])
        sleeping = {
            "application-id": application_id,
            "application-name": "sleep",
            "application-type": "YARN",
            "am-container-spec": {"commands": {"command": "exec sleep 3600"}},
            "resource": {"memory": MEMORY, "vCores": 1},
            "max-app-attempts": 1,
        }
        self._send("POST", "apps", sleeping)
        wait_for("its container", lambda: self.application(application_id)["allocatedMB"] == MEMORY)
        try:
            yield
        finally:
            self._send("PUT", f"apps/{application_id}/state", {"state": "KILLED"})

    def snapshots(self, table: str) -> list[str]:
        """The names of the table's snapshots."""
        return sorted(
            path.name for path in (self.warehouse / "shop.db" / table).glob("snapshot/snapshot-*")
        )

    def _send(self, method: str, path: str, body: Any = None) -> Any:
        address = f"{self.yarn.address}/ws/v1/cluster/{path}"
        answer = requests.request(method, address, json=body, timeout=60)
        answer.raise_for_status()
        return answer.json() if answer.content else None


@dataclass
class Points:
    """Where drivers stop, see tests/cluster/executor_python."""

    folder: Path

    @property
    def conf(self) -> dict[str, str]:
        """Of a job that stops there."""
        variables = {"FAULT_FOLDER": str(self.folder), "PYTHONPATH": str(FAULTS)}
        return {
            f"{prefix}.{name}": value
            for prefix in ("spark.yarn.appMasterEnv", "spark.executorEnv")
            for name, value in variables.items()
        }

    def arm(self, *points: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for point in points:
            (self.folder / f"armed-{point}").touch()

    def is_hit(self, point: str) -> bool:
        return (self.folder / f"hit-{point}").exists()

    def release(self, point: str) -> None:
        (self.folder / f"release-{point}").touch()


@dataclass
class Task:
    """A task of an operator, run in a thread as a worker runs it in a process."""

    cluster: Cluster
    make: Callable[[], SparkJobOperator]
    dag_id: str = field(default_factory=lambda: f"dag_{uuid.uuid4().hex[:8]}")
    error: BaseException | None = None
    result: Any = None

    def __post_init__(self) -> None:
        with DAG(self.dag_id, schedule=None, start_date=datetime(2024, 1, 1)):  # noqa: DTZ001
            self.operator = self.make()
        self._thread = threading.Thread(target=self._run, name=self.dag_id)

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        self._thread.join()

    def end(self) -> None:
        """What Airflow does when the task is marked, cleared or stopped."""
        self.operator.on_kill()
        self.join()

    def application_id(self) -> str:
        """Of the only application, once YARN has accepted it."""
        (found,) = self.wait_for("the application", lambda: self.cluster.applications(self.name))
        return str(found["id"])

    def wait_for(self, what: str, look: Callable[[], Any]) -> Any:
        """As the function, but fails once the task has ended."""

        def found() -> Any:
            assert self._thread.is_alive(), f"the task ended without {what}: {self.error}"
            return look()

        return wait_for(what, found)

    @property
    def name(self) -> str:
        """Of the application."""
        return f"{self.dag_id}.{self.operator.task_id}"

    def _run(self) -> None:
        try:
            self.result = self.operator.execute(context_of(self.operator))
        except BaseException as error:  # noqa: BLE001 - tests look at it
            self.error = error
