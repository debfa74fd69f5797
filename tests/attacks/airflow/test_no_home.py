"""Workers as Kubernetes may start them: no home, no name, small disks, a read-only root."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest

from airflow_provider_merge.submit import user_names
from airflow_provider_merge.submit.spark_environment import SparkEnvironment
from airflow_provider_merge.submit.surroundings import class_archive_folder
from spark_jobs.errors import CatalogError, ErrorCode, RequestError
from tests.support.namespaces import ROOT, in_namespace, mounted, namespaces, python

__all__ = ["namespaces"]

# Files that belong to root, such as this Python, stay readable.
_NOBODY = (
    *("setpriv", "--reuid", "12345", "--regid", "0", "--clear-groups"),
    *("--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search"),
    *("env", "-u", "HOME", "-u", "USER", "-u", "LOGNAME"),
)


@pytest.fixture
def spark_env() -> str:
    return os.environ.get("MERGE_SPARK_ENV", str(ROOT / ".venv-spark"))


def _run(folder: Path, spark_env: str) -> list[str | None]:
    """What a job tells whose only writable disk of some size is ``folder``."""
    folder.chmod(0o777)
    mounts = [
        f"mount --bind {shlex.quote(str(folder))} /mnt",
        mounted(Path("/tmp"), "64m"),
        mounted(Path("/dev/shm"), "64k"),
        "mount -o remount,ro,bind /",
    ]
    variables = {
        "AIRFLOW_HOME": "/mnt/airflow",
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
        "SPARK_CONF_DIR": str(ROOT / "tests/spark_conf"),
        "MERGE_SPARK_ENV": spark_env,
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    (folder / "warehouse").mkdir(mode=0o777)
    (folder / "warehouse").chmod(0o777)
    program = python("-m", "tests.attacks.airflow.nobody", "/mnt/warehouse")
    done = in_namespace(mounts, [*_NOBODY, *program], variables)
    assert done.returncode == 0, done.stderr[-4000:]
    told: list[str | None] = json.loads(done.stdout.splitlines()[-1])
    return told


def test_a_user_without_home_and_name_on_small_and_read_only_disks(
    tmp_path: Path, namespaces: None, spark_env: str
) -> None:
    if user_names._library() is None:
        pytest.skip("needs nss_wrapper (Debian's package libnss-wrapper)")

    assert _run(tmp_path, spark_env) == [None, None]


def test_a_user_without_a_name_is_told_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    monkeypatch.setattr(user_names, "_LIBRARIES", ())

    with pytest.raises(CatalogError) as raised:
        user_names.user_variables(tmp_path, {})

    assert raised.value.code is ErrorCode.USER_MISSING
    assert "12345" in raised.value.message


def test_there_is_no_class_archive_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.delenv("AIRFLOW__MERGE__CLASS_ARCHIVE_FOLDER", raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 12345)

    assert class_archive_folder() is None
    with pytest.raises(RequestError, match="spark_env"):
        SparkEnvironment.at("~/spark", "spark_env")
