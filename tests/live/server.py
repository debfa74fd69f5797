"""A whole Airflow on free ports: API server, scheduler, triggerer and DAG processor."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.live.client import Client
from tests.support.ports import free_ports
from tests.support.waiting import wait_for

# Long enough for a busy machine's late heartbeats, short enough to wait for.
HEARTBEAT_TIMEOUT = 45


@dataclass
class Server:
    """``airflow standalone`` in a session of its own, so that nothing of it can get lost."""

    folder: Path
    variables: dict[str, str]
    client: Client = field(init=False)
    _process: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self.dags.mkdir(parents=True)
        api, workers, triggers = free_ports(3)
        url = f"http://127.0.0.1:{api}"
        self.client = Client(url)
        home = self.folder / "home"
        self.variables = {
            # A busy machine's writers wait for one another longer than SQLite's five seconds.
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db?timeout=60",
            **self.variables,
            # Standalone starts its components by the name "airflow".
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__CORE__PARALLELISM": "4",
            "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "True",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(api),
            "AIRFLOW__API__BASE_URL": url,
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(workers),
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(triggers),
            "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "600",
            "AIRFLOW__DAG_PROCESSOR__DAG_FILE_PROCESSOR_TIMEOUT": "900",
            "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "600",
            "AIRFLOW__DAG_PROCESSOR__BUNDLE_REFRESH_CHECK_INTERVAL": "1",
            "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": str(HEARTBEAT_TIMEOUT),
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "1",
            "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
            "AIRFLOW__WORKERS__MAX_FAILED_HEARTBEATS": "20",
            "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
            "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        }

    @property
    def dags(self) -> Path:
        """The DAG folder."""
        return self.folder / "dags"

    @property
    def log(self) -> Path:
        """What all components print."""
        return self.folder / "server.log"

    def start(self) -> None:
        """Start every component and wait until all of them are healthy."""
        self.airflow("db", "migrate")
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "airflow", "standalone"],
                env=self.variables,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        wait_for("a healthy server", self._healthy, every=0.5)

    def stop(self) -> list[psutil.Process]:
        """End every process of the server's session; returns what even SIGKILL left."""
        if self._process is None:
            return []
        for process in self.processes():
            _send(process, signal.SIGTERM)
        began = time.monotonic()
        while (left := self.processes()) and time.monotonic() < began + 120:
            if time.monotonic() > began + 8:
                # More than once: a process may have made another one meanwhile.
                for process in left:
                    _send(process, signal.SIGKILL)
            self._process.poll()
            time.sleep(0.1)
        self._process.wait(timeout=60)
        return left

    def processes(self) -> list[psutil.Process]:
        """All living processes of the server, its workers and their jobs.

        A process group would not do: task runners and Python workers make groups of their own, but
        none leaves the session.
        """
        assert self._process is not None
        return [each for each in psutil.process_iter() if _in_session(each, self._process.pid)]

    def airflow(self, *arguments: str) -> str:
        """Run the airflow command, again if SQLite stayed locked; what it printed."""
        (done,) = wait_for(f"airflow {arguments[0]}", lambda: self._ended(arguments))
        assert done.returncode == 0, done.stdout
        return done.stdout

    def add_dag(self, dag_id: str, text: str) -> None:
        """Write a DAG file, or replace it, and start its DAGs once the DAG processor has found it.

        ``dag_id`` is the name of one of them, and part of the others' names.
        """
        path = self.dags / f"{dag_id}.py"
        new = path.with_suffix(".new")
        new.write_text(text)
        new.replace(path)
        self.start_dags(dag_id)

    def start_dags(self, dag_id: str) -> None:
        """Wait for a DAG; it and those that have its name in theirs are no longer paused."""
        wait_for(f"the DAG {dag_id}", lambda: self.client.knows(dag_id))
        self.client.start_dags(dag_id)

    def _ended(self, arguments: tuple[str, ...]) -> list[subprocess.CompletedProcess[str]]:
        """The command's only end; none if SQLite stayed locked."""
        done = subprocess.run(
            [sys.executable, "-m", "airflow", *arguments],
            env=self.variables,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=900,
        )
        return [] if done.returncode and "database is locked" in done.stdout else [done]

    def _healthy(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log.read_text(errors="replace")[-8000:]
        health = self.client.health()
        names = ("metadatabase", "scheduler", "triggerer", "dag_processor")
        return all(health.get(name, {}).get("status") == "healthy" for name in names)


def _in_session(process: psutil.Process, session: int) -> bool:
    try:
        return os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE
    except (ProcessLookupError, psutil.NoSuchProcess):
        return False


def _send(process: psutil.Process, number: int) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return
