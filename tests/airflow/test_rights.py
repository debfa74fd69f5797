"""Folders that this worker's user may not write are told before a driver starts here."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_merge.submit.plain_python import PlainPythonSubmitter
from airflow_provider_merge.submit.spark_submit import SparkSubmitSubmitter
from airflow_provider_merge.submit.submitter import SparkJob, SparkSettings
from spark_jobs.errors import CatalogError, ErrorCode
from tests.airflow.launcher import Launcher
from tests.airflow.support import connection, example_request
from tests.support.namespaces import python, run_as

_NOBODY = 65534


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What a user other than root was told: rights do not bind root."""
    user = _NOBODY if os.geteuid() == 0 else os.geteuid()
    if user == _NOBODY and shutil.which("setpriv") is None:
        pytest.skip("runs as root, whom rights do not bind, and has no setpriv of util-linux")
    folder = tmp_path_factory.mktemp("closed")
    folder.chmod(0o777)
    done = run_as(user, python("-m", "tests.airflow.tried_rights", str(folder)), folder)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_whoever_has_all_rights_is_told_nothing(told: Any) -> None:
    assert [told["paimon"][""], told["iceberg"][""]] == [[], []]


@pytest.mark.parametrize(
    ("table_format", "folder", "code"),
    [
        ("paimon", "_operations", "WORKSPACE_ACCESS_DENIED"),
        ("paimon", "shop.db/orders/snapshot", "WAREHOUSE_ACCESS_DENIED"),
        ("paimon", "shop.db/orders/manifest", "WAREHOUSE_ACCESS_DENIED"),
        ("iceberg", "_operations", "WORKSPACE_ACCESS_DENIED"),
        ("iceberg", "shop/orders/metadata", "WAREHOUSE_ACCESS_DENIED"),
    ],
)
def test_a_closed_folder_is_named(told: Any, table_format: str, folder: str, code: str) -> None:
    found, message = told[table_format][folder]

    assert found == code
    assert f"/{table_format}/{folder}: " in message


def refused() -> None:
    raise CatalogError(ErrorCode.WORKSPACE_ACCESS_DENIED, "closed", "Open it.")


@pytest.mark.parametrize("submitter", [SparkSubmitSubmitter, PlainPythonSubmitter])
def test_a_driver_on_this_worker_is_not_started_without_rights(
    submitter: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection(monkeypatch, "spark_default", conn_type="spark", host="local[2]")
    launcher = Launcher.make(tmp_path / "env")
    job = SparkJob("dag.task", example_request(), require_rights=refused)

    with pytest.raises(CatalogError, match="closed"):
        submitter(SparkSettings(spark_env=str(launcher.folder))).submit(job)

    assert not launcher.record.exists()


def test_the_rights_of_this_worker_say_nothing_of_a_driver_on_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection(monkeypatch, "spark_default", conn_type="spark", host="yarn")
    launcher = Launcher.make(tmp_path / "env")
    job = SparkJob("dag.task", example_request(), require_rights=refused)

    settings = SparkSettings(spark_env=str(launcher.folder), deploy_mode="cluster")
    SparkSubmitSubmitter(settings).submit(job)

    assert launcher.record.exists()
