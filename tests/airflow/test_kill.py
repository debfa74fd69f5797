"""Ending a job ends every process of it, also the orphaned ones, and removes its files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import psutil
import pytest

from airflow_provider_merge.submit import processes
from airflow_provider_merge.submit.processes import (
    OPERATION,
    SUBMISSION,
    end_processes,
    job_processes,
)
from airflow_provider_merge.submit.spark_submit import SparkSubmitSubmitter
from airflow_provider_merge.submit.submitter import SparkJob, SparkSettings, SubmissionError
from spark_jobs.contract.request import JobRequest
from tests.airflow.launcher import Launcher
from tests.airflow.support import connection, example_request

# Starts a job; its submitter, thread, errors and what its launcher saw.
Start = Callable[..., tuple[SparkSubmitSubmitter, Thread, list[SubmissionError], dict[str, Any]]]

pytestmark = pytest.mark.slow

# A launcher that starts a child, which ignores SIGTERM, in a session of its own, and waits. The
# child holds no pipe of the launcher, for whose end the submitter would wait.
FAMILY = """
child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
null = subprocess.DEVNULL
subprocess.Popen([sys.executable, "-c", child], start_new_session=True, stdout=null, stderr=null)
{then}
"""


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Submits a job in a thread; returns submitter, thread, outcome, and its processes' marks."""
    connection(monkeypatch, "spark_default", conn_type="spark", host="local")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    threads = []
    requests = []

    def begin(
        then: str, request: JobRequest | None = None
    ) -> tuple[SparkSubmitSubmitter, Thread, list[SubmissionError], dict[str, Any]]:
        job = SparkJob("dag.task", request or example_request())
        requests.append(job.work)
        launcher = Launcher.make(tmp_path / f"env{len(requests)}", FAMILY.format(then=then))
        submitter = SparkSubmitSubmitter(SparkSettings(spark_env=str(launcher.folder)))
        outcome = []

        def run() -> None:
            try:
                submitter.submit(job)
            except SubmissionError as error:
                outcome.append(error)

        thread = threading.Thread(target=run)
        threads.append(thread)
        thread.start()
        wait_for(launcher.record.exists)
        seen = launcher.seen["environment"]
        marks = {name: seen[name] for name in (OPERATION, SUBMISSION)}
        wait_for(lambda: len(job_processes(marks)) == 2)
        return submitter, thread, outcome, marks

    yield begin
    for request in requests:
        end_processes({OPERATION: request.operation_id})
    for thread in threads:
        thread.join(60)


def wait_for(condition: Callable[[], bool], seconds: int = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def test_kill_ends_the_tree_and_waits(start: Start, tmp_path: Path) -> None:
    submitter, thread, outcome, marks = start("time.sleep(600)")
    family = job_processes(marks)
    began = time.monotonic()
    submitter.kill()
    assert time.monotonic() - began < 30, "the job did not end by itself"
    assert job_processes(marks) == []
    assert not [process for process in family if _lives(process)]
    thread.join(60)
    assert len(outcome) == 1
    assert not list(tmp_path.glob("merge-job-*"))


def test_orphans_are_found(start: Start) -> None:
    submitter, _, _, marks = start("time.sleep(5)")
    wait_for(lambda: len(job_processes(marks)) == 1)
    (orphan,) = job_processes(marks)
    submitter.kill()
    assert not _lives(orphan)


def test_driver_that_outlives_its_launcher_is_ended_before_the_outcome_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection(monkeypatch, "spark_default", conn_type="spark", host="local")
    launcher = Launcher.make(tmp_path / "env", FAMILY.format(then="sys.exit(1)"))
    submitter = SparkSubmitSubmitter(SparkSettings(spark_env=str(launcher.folder)))
    request = example_request()
    began = time.monotonic()
    with pytest.raises(SubmissionError):
        submitter.submit(SparkJob("dag.task", request))
    assert time.monotonic() - began < 120, "the driver ended by itself"
    assert job_processes({OPERATION: request.operation_id}) == []


def test_process_that_one_look_misses_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel shows no environment of a process while it loads it."""
    marks = {OPERATION: uuid.uuid4().hex}
    sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    child = subprocess.Popen(sleep, env={**os.environ, **marks})
    looks: Iterator[list[int]] = iter([[]])
    monkeypatch.setattr(
        processes,
        "job_processes",
        lambda each: job_processes(each) if next(looks, None) is None else [],
    )
    try:
        assert processes.end_processes(marks) == 1
        assert child.wait(60) == -signal.SIGKILL
    finally:
        child.kill()


def test_next_try_ends_what_an_earlier_one_left_and_outlives_it(start: Start) -> None:
    """The earlier try's worker may still live, cut off from Airflow."""
    request = example_request()
    earlier, thread, outcome, earlier_marks = start("time.sleep(600)", request)
    *_, marks = start("time.sleep(600)", request)
    thread.join(60)
    assert len(outcome) == 1
    assert job_processes(earlier_marks) == []
    earlier.kill()
    assert len(job_processes(marks)) == 2


def test_another_operation_is_left_alone(start: Start) -> None:
    submitter, *_ = start("time.sleep(600)")
    *_, other = start("time.sleep(600)")
    submitter.kill()
    assert len(job_processes(other)) == 2


def test_killed_before_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connection(monkeypatch, "spark_default", conn_type="spark", host="local")
    launcher = Launcher.make(tmp_path / "env")
    submitter = SparkSubmitSubmitter(SparkSettings(spark_env=str(launcher.folder)))
    submitter.kill()
    with pytest.raises(SubmissionError, match="before the job was started"):
        submitter.submit(SparkJob("dag.task", example_request()))
    assert not launcher.record.exists()


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
