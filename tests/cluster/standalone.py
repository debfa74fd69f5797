"""A Spark standalone cluster on this machine, and jobs on it as the operator submits them."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyspark

from airflow_provider_merge import job_package
from spark_jobs.contract.request import JobRequest
from tests.cluster.processes import Found, descendants, is_java, kill, wait_for
from tests.support.java import needed_for_java

ROOT = Path(__file__).resolve().parents[2]
EXECUTOR_PYTHON = ROOT / ".venv-executor" / "bin" / "python"
FAULTS = Path(__file__).with_name("executor_python")
SPARK_HOME = Path(pyspark.__file__).parent

_SMALL_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_DEPLOY = "org.apache.spark.deploy"


def clean_environment(**more: str) -> dict[str, str]:
    """The variables that a process of Spark needs: above all, no path to this project."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME") if name in os.environ}
    local = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(SPARK_HOME), "LC_ALL": "C.UTF-8"}
    return {**kept, **local, **needed_for_java(kept), **more}


@dataclass
class Cluster:
    """A master and two workers with one core each; ``stop`` ends all that it started.

    The workers go by two names of one machine: Spark starts no speculative copy on the same host.
    """

    folder: Path
    master: str = ""
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self) -> None:
        log = self._launch("master", f"{_DEPLOY}.master.Master", "--port", "0")
        started = re.compile(r"Starting Spark master at (spark://\S+)")
        self.master = wait_for("the master's start", lambda: started.search(log.read_text()))[1]
        memory = ["--cores", "1", "--memory", "1g", "--work-dir"]
        registered = "Successfully registered with master"
        for name, host in (("worker-1", "127.0.0.1"), ("worker-2", "localhost")):
            arguments = [*memory, str(self.folder / name), self.master]
            log = self._launch(name, f"{_DEPLOY}.worker.Worker", *arguments, host=host)
            wait_for(name, lambda log=log: registered in log.read_text())

    def stop(self) -> None:
        pids = [pid for each in self.processes for pid in (each.pid, *descendants(each.pid))]
        for pid in pids:
            kill(pid)
        for process in self.processes:
            process.wait()

    def _launch(self, name: str, main: str, *arguments: str, host: str = "127.0.0.1") -> Path:
        log = self.folder / f"{name}.log"
        command = [SPARK_HOME / "bin" / "spark-class", main]
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, "--host", host, "--webui-port", "0", *arguments],
                cwd=self.folder,
                env=clean_environment(
                    SPARK_DAEMON_MEMORY="256m", SPARK_DAEMON_JAVA_OPTS=_SMALL_JVM
                ),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.processes.append(process)
        return log


@dataclass
class Submission:
    """One spark-submit, in a folder of its own that knows the project only as a zip.

    ``points``: where a process of the job stops, see ``executor_python``; ``plan``: the physical
    plan of its merge, empty: the one that suits it.
    """

    folder: Path
    request: JobRequest
    master: str
    conf: Mapping[str, str] = field(default_factory=dict)
    points: tuple[str, ...] = ()
    executor_python: Path = EXECUTOR_PYTHON
    plan: str = ""

    def start(self) -> subprocess.Popen[bytes]:
        shutil.rmtree(self.folder, ignore_errors=True)
        for name in ("job", "events", "faults", "cwd", "tmp"):
            (self.folder / name).mkdir(parents=True)
        job = self.folder / "job"
        shutil.copyfile(job_package.main_file(), job / "main.py")
        job_package.write_zip(job / "spark_jobs.zip")
        (job / "request.json").write_text(self.request.to_json())
        for point in self.points:
            (self.faults / f"armed-{point}").touch()
        command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", self.master]
        for name, value in {**self._settings(), **self.conf}.items():
            command += ["--conf", f"{name}={value}"]
        command += ["--py-files", str(job / "spark_jobs.zip"), "--name", "merge"]
        command += [str(job / "main.py"), "--request", str(job / "request.json")]
        faults = {
            "PYTHONFAULTHANDLER": "1",
            "FAULT_FOLDER": str(self.faults),
            "PYTHONPATH": str(FAULTS),
        }
        if self.plan:
            faults["FAULT_PLAN"] = self.plan
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                cwd=self.folder / "cwd",
                env=clean_environment(**faults),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        return self._process

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def faults(self) -> Path:
        return self.folder / "faults"

    def hit(self, point: str) -> int:
        """Wait until a process has stopped at ``point``; its pid."""
        path = self.faults / f"hit-{point}"
        return int(self.wait_for(point, lambda: path.exists() and path.read_text()))

    def wait_for(self, what: str, look: Callable[[], Found]) -> Found:
        """The first true thing ``look`` returns while the job runs; fails with the job's log."""

        def found() -> Found:
            seen = look()
            ended = self._process.poll() is not None
            assert seen or not ended, f"the job ended before this: {what}"
            return seen

        try:
            return wait_for(what, found, seconds=300)
        except AssertionError as error:
            self._tell_where_it_hangs()
            raise AssertionError(f"{error}\n{self.log.read_text()[-60_000:]}") from None

    def _tell_where_it_hangs(self) -> None:
        """Let each process that still runs write its stacks into the log; a Python ends of it."""
        pids = [self._process.pid, *descendants(self._process.pid)]
        for asking in (signal.SIGQUIT, signal.SIGABRT):
            for pid in pids:
                if is_java(pid) == (asking == signal.SIGQUIT):
                    kill(pid, asking)
            time.sleep(1)

    def seen(self) -> list[dict[str, Any]]:
        """What the sink tasks' Pythons told of themselves."""
        return [json.loads(path.read_text()) for path in self.faults.glob("seen-*.json")]

    @cached_property
    def tasks(self) -> list[dict[str, Any]]:
        """Spark's own events of all ended tasks."""
        (log,) = (self.folder / "events").iterdir()
        events = map(json.loads, log.read_text().splitlines())
        return [each for each in events if each["Event"] == "SparkListenerTaskEnd"]

    def _settings(self) -> dict[str, str]:
        return {
            "spark.pyspark.python": str(self.executor_python),
            "spark.pyspark.driver.python": sys.executable,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "512m",
            "spark.driver.extraJavaOptions": f"{_SMALL_JVM} -Djava.io.tmpdir={self.folder}/tmp",
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": f"{_SMALL_JVM} -Djava.io.tmpdir={self.folder}/tmp",
            "spark.executorEnv.FAULT_FOLDER": str(self.faults),
            "spark.executorEnv.PYTHONPATH": str(FAULTS),
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "4",
            "spark.sql.warehouse.dir": str(self.folder / "spark-warehouse"),
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": (self.folder / "events").as_uri(),
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
        }
