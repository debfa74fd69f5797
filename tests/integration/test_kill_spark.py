"""Ending a task in the middle ends the JVM and the Python driver, at once."""

from __future__ import annotations

import json
import threading
import time

import psutil
import pytest

from airflow_provider_merge.submit.processes import end_processes, job_processes
from airflow_provider_merge.submit.spark_submit import SparkSubmitSubmitter
from airflow_provider_merge.submit.submitter import SparkJob, SparkSettings, SubmissionError
from spark_jobs.contract.request import CatalogSpec, JobRequest, SqlSource, TableName
from spark_jobs.contract.statements import DeleteAction, MergeCase, MergeSpec

pytestmark = pytest.mark.slow


@pytest.mark.extended
def test_kill_while_the_driver_runs(lake, monkeypatch):
    spark = {"conn_type": "spark", "host": "local[1]"}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(spark))
    request = JobRequest(
        operation_id="killed",
        target=TableName("shop", "none"),
        catalog=CatalogSpec("paimon", str(lake.warehouse)),
        statement=MergeSpec("s", "t.id = s.id", (MergeCase("matched", DeleteAction()),), "t", "s"),
        sources=(SqlSource("s", "SELECT 1 AS id"),),
    )
    submitter = SparkSubmitSubmitter(SparkSettings(spark_env=str(lake.spark_env)))
    outcome = []

    def submit():
        try:
            submitter.submit(SparkJob("killed", request))
        except SubmissionError as error:
            outcome.append(error)

    thread = threading.Thread(target=submit)
    thread.start()
    try:
        names = _wait_for_driver(request.operation_id)
        assert "java" in names
        began = time.monotonic()
        submitter.kill()
        assert time.monotonic() - began < 30
        assert job_processes(request.operation_id) == []
    finally:
        end_processes(request.operation_id)
        thread.join(120)
    assert len(outcome) == 1
    assert lake.results("shop.none") == [], "the job got no further"


def _wait_for_driver(operation_id):
    """Wait for the Python driver, the JVM's child; returns the names of all processes."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        names = [_name(process) for process in job_processes(operation_id)]
        if any(name.startswith("python") for name in names):
            return names
        time.sleep(0.05)
    raise AssertionError("no driver was started")


def _name(process):
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""
