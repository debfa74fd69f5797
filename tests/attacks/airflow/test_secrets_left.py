"""Secrets of connections and jobs, where people left them behind or let them be logged."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
from airflow._shared.secrets_masker import SecretsMasker as ServersMasker
from airflow.sdk._shared.secrets_masker import SecretsMasker

from airflow_provider_merge.__main__ import main
from airflow_provider_merge.hooks.catalog import catalog_hook
from airflow_provider_merge.submit.job_files import LONGEST, PREFIX, job_files, sign
from airflow_provider_merge.submit.submitter import SparkJob
from tests.airflow.support import connection, example_request

TOKEN = "session-token-of-the-connection"
KEY = "secret-key-of-the-connection"
CONNECTIONS = {
    "paimon": {
        "conn_type": "paimon",
        "login": "a-login-of-the-connection",
        "password": KEY,
        "extra": {
            "warehouse": "s3://lake/warehouse",
            "options": {"fs.s3.securityToken": TOKEN, "fs.s3.accessKeySecret": KEY},
        },
    },
    "iceberg": {
        "conn_type": "iceberg",
        "host": "http://catalog:1",
        "extra": {
            "type": "rest",
            "warehouse": "s3://lake/warehouse",
            "s3.session-token": TOKEN,
            "s3.secret-access-key": KEY,
        },
    },
}
# Makes a job's folder, as a task does, and waits to be killed.
WORKER = """
import time
from airflow_provider_merge.submit.job_files import job_files
from airflow_provider_merge.submit.submitter import SparkJob
from tests.airflow.support import example_request
job = SparkJob("dag.task", example_request(), {"key": "secret"})
with job_files(job, is_shipped=False) as files:
    print(files.folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture(params=[SecretsMasker, ServersMasker], ids=["task", "server"])
def logged(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    """What a library logs of the text that it is given, as tasks or servers of Airflow show it."""
    masker = request.param()
    monkeypatch.setattr(request.param, "mask_secrets_in_logs", True)
    module = sys.modules[request.param.__module__]
    monkeypatch.setattr(module, "_secrets_masker", lambda: masker)
    if request.param is SecretsMasker:
        monkeypatch.setattr("airflow.sdk.log._secrets_masker", lambda: masker)

    def shown(text: str) -> str:
        record = logging.makeLogRecord({"msg": "Authorization: %s", "args": (text,)})
        masker.filter(record)
        return record.getMessage()

    return shown


@pytest.mark.parametrize("kind", CONNECTIONS)
@pytest.mark.parametrize("asked", ["credentials", "storage_options", "workspace_options"])
def test_whoever_composes_secrets_masks_them(monkeypatch, logged, kind: str, asked: str) -> None:
    connection(monkeypatch, "lake", **CONNECTIONS[kind])
    assert TOKEN in logged(TOKEN)

    getattr(catalog_hook("lake"), asked)()

    assert logged(f"x-amz-security-token: {TOKEN}; {KEY}").endswith("***; ***")


# Jobs hide as short ones; shorter ones, such as "false", occur in ordinary lines.
@pytest.mark.parametrize(("secret", "is_hidden"), [("k7Qx2p", True), ("k7Qx2", False)])
def test_short_secrets(monkeypatch, logged, secret: str, is_hidden: bool) -> None:
    extra = {"warehouse": "s3://lake/warehouse", "options": {"fs.s3.securityToken": secret}}
    connection(monkeypatch, "lake", conn_type="paimon", extra=extra)

    catalog_hook("lake").credentials()

    assert (secret not in logged(secret)) is is_hidden


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


@pytest.fixture
def killed(temporary: Path) -> Path:
    """The folder that a worker left who was killed."""
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER], stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    with worker:
        assert worker.stdout is not None
        folder = Path(worker.stdout.readline().strip())
        assert (folder / "credentials.json").exists()
        worker.send_signal(signal.SIGKILL)
    return folder


@pytest.mark.slow
def test_the_next_job_removes_what_a_killed_worker_left(killed: Path) -> None:
    assert (killed / "credentials.json").exists()

    with job_files(SparkJob("dag.other", example_request(operation_id="b")), is_shipped=False):
        assert not killed.exists()


@pytest.mark.slow
def test_and_so_does_a_command(killed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep"]) == 0

    assert not killed.exists()
    assert capsys.readouterr().out == f"removed: {killed}\nfolders of killed workers: 1\n"


def test_the_folder_of_a_job_that_runs_stays(temporary: Path) -> None:
    with job_files(SparkJob("dag.task", example_request()), is_shipped=False) as files:
        assert main(["sweep"]) == 0
        assert files.work.exists()


def test_another_process_with_the_number_of_a_killed_worker_keeps_no_folder(
    temporary: Path,
) -> None:
    folder = temporary / f"{PREFIX}a-b"
    folder.mkdir()
    sign(folder)
    note = folder / "owner.json"
    owner = json.loads(note.read_text())
    note.write_text(json.dumps({**owner, "started": owner["started"] - 60}))

    main(["sweep"])

    assert not folder.exists()


@pytest.mark.parametrize("days", [1, 8])
@pytest.mark.parametrize("owner", [None, "{}", "no JSON", '{"place": ["b", "n"], "pid": 1}'])
def test_folders_of_other_machines_go_by_their_age(
    temporary: Path, owner: str | None, days: int
) -> None:
    folder = temporary / f"{PREFIX}a-b"
    folder.mkdir()
    (folder / "credentials.json").write_text(json.dumps({"key": "secret"}))
    if owner is not None:
        (folder / "owner.json").write_text(owner)
    then = time.time() - timedelta(days=days).total_seconds()
    os.utime(folder, (then, then))

    main(["sweep"])

    assert folder.exists() == (timedelta(days=days) < LONGEST)


def test_links_are_not_followed(temporary: Path) -> None:
    other = temporary / "other"
    other.mkdir()
    os.utime(other, (0, 0))
    (temporary / f"{PREFIX}a-b").symlink_to(other)

    main(["sweep"])

    assert other.exists()
