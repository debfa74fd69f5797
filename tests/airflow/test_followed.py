"""In cluster mode, a task's log tells how far its statements are, from their notes."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_merge.hooks.catalog import catalog_hook
from airflow_provider_merge.operators._shared.followed import following
from airflow_provider_merge.submit.spark_submit import SparkSubmitSubmitter
from airflow_provider_merge.submit.submitter import SparkJob, SparkSettings
from spark_jobs.contract.operation_files import running_path
from spark_jobs.contract.progress_note import ProgressNote, Share
from spark_jobs.contract.request import JobRequest, Origin
from tests.airflow.launcher import Launcher
from tests.airflow.support import connection, example_request

pytestmark = pytest.mark.slow
log = logging.getLogger("tests.followed")


@pytest.fixture
def request_of_task(warehouse: Path) -> JobRequest:
    catalog = catalog_hook("paimon_default").catalog_spec()
    return example_request(catalog=catalog, origin=Origin("dag", "run", "task", try_number=2))


def tell(warehouse: Path, request: JobRequest, share: Share, phase: str = "write") -> None:
    """Leave the note that a job leaves."""
    now = time.time()
    path = warehouse / running_path(request.operation_id)
    path.parent.mkdir(exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(ProgressNote.of(request, now - 60, now, phase, share).to_json() + "\n" * 99)
    part.replace(path)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each for each in caplog.messages if "progress: " in each]


def test_each_ten_percents(
    warehouse: Path, request_of_task: JobRequest, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    hook = catalog_hook("paimon_default")

    with following([(request_of_task, hook)], log, every=0.02):
        time.sleep(0.2)
        for done in (0, 3, 30):
            tell(warehouse, request_of_task, Share(done, 100))
            time.sleep(0.3)

    told = lines(caplog)
    assert len(told) == 2
    assert told[0].startswith("shop.orders: progress: write, for 60 seconds in all; 0 of 100 tasks")
    assert "30 of 100" in told[1]


def test_what_an_earlier_try_left_is_not_told(
    warehouse: Path, request_of_task: JobRequest, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    origin = replace(request_of_task.origin, try_number=1)
    tell(warehouse, replace(request_of_task, origin=origin), Share(1, 2))

    with following([(request_of_task, catalog_hook("paimon_default"))], log, every=0.02):
        time.sleep(0.3)

    assert lines(caplog) == []


def test_a_note_that_cannot_be_read_does_not_matter(
    warehouse: Path, request_of_task: JobRequest
) -> None:
    path = warehouse / running_path(request_of_task.operation_id)
    path.mkdir(parents=True)

    with following([(request_of_task, catalog_hook("paimon_default"))], log, every=0.02):
        time.sleep(0.2)


@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_only_drivers_on_a_cluster_are_followed(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection(monkeypatch, "yarn", conn_type="spark", host="yarn")
    launcher = Launcher.make(tmp_path / "env")
    followed: list[str] = []

    @contextmanager
    def follow() -> Iterator[None]:
        followed.append("begins")
        yield
        followed.append("ends")

    conf = {"spark.pyspark.python": "./env/bin/python"}
    settings = SparkSettings("yarn", conf, deploy_mode=mode, spark_env=str(launcher.folder))
    job = SparkJob("dag.task", example_request(), follow=follow)

    SparkSubmitSubmitter(settings).submit(job)

    assert followed == (["begins", "ends"] if mode == "cluster" else [])
