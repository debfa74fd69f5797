"""What a task that ends does about its application on a cluster, and what it says of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_merge.metadata.operations import shut_out
from airflow_provider_merge.submit.spark_submit import SparkSubmitSubmitter
from airflow_provider_merge.submit.submitter import SparkJob, SparkSettings, SubmissionError
from spark_jobs.contract.operation_files import fence_path
from spark_jobs.contract.request import CatalogSpec, Origin
from tests.airflow.launcher import Launcher
from tests.airflow.support import connection, example_request

APPLICATION = "application_1700000000000_0001"
CLIENT = "26/11/26 21:00:00 INFO YarnClientImpl: "
SUBMITTED = f"print('{CLIENT}Submitted application {APPLICATION}', flush=True)\n"


class ResourceManager(HTTPServer):
    """Answers requests to end an application with one status, and keeps them."""

    def __init__(self, status: int) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.status = status
        self.asked: list[tuple[str, object]] = []


class _Answer(BaseHTTPRequestHandler):
    server: ResourceManager

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append((self.path, json.loads(body)))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def manager(request: pytest.FixtureRequest) -> Iterator[ResourceManager]:
    with ResourceManager(getattr(request, "param", 202)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def submitter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., SparkSubmitSubmitter]:
    """Submits in cluster mode, with a launcher that does what it is told."""

    def make(then: str, **extra: Any) -> SparkSubmitSubmitter:
        connection(
            monkeypatch, "yarn", conn_type="spark", host="yarn",
            extra={"deploy-mode": "cluster", **extra},
        )  # fmt: skip
        launcher = Launcher.make(tmp_path / "env", then)
        return SparkSubmitSubmitter(SparkSettings("yarn", spark_env=str(launcher.folder)))

    return make


@pytest.fixture
def submit(submitter: Callable[..., SparkSubmitSubmitter]) -> Callable[..., list[int]]:
    """Submits with a launcher that fails in the end; the operations given up."""
    given_up = []

    def start(then: str, **extra: Any) -> list[int]:
        job = SparkJob("dag.task", example_request(), give_up=lambda: given_up.append(1))
        with pytest.raises(SubmissionError):
            submitter(then, **extra).submit(job)
        return given_up

    return start


def test_the_resource_manager_is_asked(
    submit: Callable[..., list[int]], manager: ResourceManager
) -> None:
    address = f"127.0.0.1:{manager.server_port}"

    given_up = submit(f"{SUBMITTED}sys.exit(1)", yarn_resourcemanager_webapp_address=address)

    path = f"/ws/v1/cluster/apps/{APPLICATION}/state"
    assert manager.asked == [(path, {"state": "KILLED"})]
    assert given_up == [1]


def test_folders_named_after_applications_are_no_applications(
    submit: Callable[..., list[int]], manager: ResourceManager
) -> None:
    address = f"127.0.0.1:{manager.server_port}"
    staging = "print('Uploading to /application_7/application_staging/x', flush=True)\n"

    submit(f"{SUBMITTED}{staging}sys.exit(1)", yarn_resourcemanager_webapp_address=address)

    assert [path for path, _ in manager.asked] == [f"/ws/v1/cluster/apps/{APPLICATION}/state"]


@pytest.mark.parametrize("manager", [202, 404], indirect=True)
def test_the_launcher_has_time_to_remove_the_staging_area(
    submitter: Callable[..., SparkSubmitSubmitter], manager: ResourceManager, tmp_path: Path
) -> None:
    """It hears of the end of its application a second later, or has not submitted it yet."""
    staging, submitted = tmp_path / "credentials.json", threading.Event()
    staging.touch()
    ending = submitter(
        f"{SUBMITTED}time.sleep(1)\nos.remove({str(staging)!r})",
        yarn_resourcemanager_webapp_address=f"127.0.0.1:{manager.server_port}",
    )
    job = SparkJob("dag.task", example_request(), announce=lambda _: submitted.set())
    thread = threading.Thread(target=ending.submit, args=(job,))
    thread.start()
    submitted.wait(60)

    ending.kill()

    thread.join()
    assert not staging.exists()


@pytest.mark.parametrize("manager", [401, 403, 404, 500], indirect=True)
def test_what_was_not_ended_is_said(
    submit: Callable[..., list[int]], manager: ResourceManager, caplog: pytest.LogCaptureFixture
) -> None:
    address = f"http://127.0.0.1:{manager.server_port}/"

    given_up = submit(f"{SUBMITTED}sys.exit(1)", yarn_resourcemanager_webapp_address=address)

    assert f"Application {APPLICATION} was not ended on the cluster" in caplog.text
    assert f"HTTP {manager.status}" in caplog.text
    assert given_up == [1]


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        ({}, "has no yarn_resourcemanager_webapp_address"),
        ({"yarn_resourcemanager_webapp_address": "127.0.0.1:1"}, "ConnectionError"),
        ({"yarn_resourcemanager_webapp_address": "http://["}, "InvalidURL"),
    ],
)
def test_no_resource_manager_to_ask(
    submit: Callable[..., list[int]],
    caplog: pytest.LogCaptureFixture,
    extra: dict[str, str],
    reason: str,
) -> None:
    given_up = submit(f"{SUBMITTED}sys.exit(1)", **extra)

    assert f"Application {APPLICATION} was not ended on the cluster" in caplog.text
    assert reason in caplog.text
    assert given_up == [1]


def test_an_application_that_was_never_accepted(
    submit: Callable[..., list[int]], caplog: pytest.LogCaptureFixture
) -> None:
    given_up = submit("sys.exit(1)")

    assert "No application was known yet" in caplog.text
    assert given_up == [1]


def test_the_fences_of_a_try_and_of_earlier_ones(tmp_path: Path) -> None:
    catalog = CatalogSpec("paimon", "/warehouse", workspace=str(tmp_path))
    request = example_request(catalog=catalog, origin=Origin("dag", "run", "task", try_number=2))

    shut_out(request, {})
    shut_out(request, {})

    fences = [tmp_path / fence_path(request.operation_id, number) for number in (1, 2, 3)]
    assert [each.exists() for each in fences] == [True, True, False]
