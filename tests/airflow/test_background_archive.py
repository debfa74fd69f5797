"""The process that the first job of an environment leaves: when, with what, and what it makes."""

from __future__ import annotations

import fcntl
import logging
import os
import subprocess
from pathlib import Path

import pytest

from airflow_provider_merge.submit.background_archive import leave_maker
from airflow_provider_merge.submit.class_archive import archive_in, archive_key
from airflow_provider_merge.submit.spark_environment import SparkEnvironment
from tests.airflow.support import PASSWORD

SECRET = "AIRFLOW_CONN_PAIMON_DEFAULT"
VARIABLES = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], SECRET: PASSWORD}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "archives"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def broken(tmp_path: Path) -> SparkEnvironment:
    """A Spark whose launcher sleeps, then fails."""
    home = tmp_path / "env" / "lib" / "python3.11" / "site-packages" / "pyspark"
    for name, text in {
        "jars/spark-core.jar": "jar",
        "bin/spark-submit": "#!/bin/sh\nenv\nsleep 0.5\necho no classes here\nexit 3\n",
    }.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
        (home / name).chmod(0o700)
    python = tmp_path / "env" / "bin" / "python"
    python.parent.mkdir()
    python.touch()
    return SparkEnvironment(python, home)


@pytest.fixture(autouse=True)
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


def test_a_failure_is_noted_and_not_repeated(
    broken: SparkEnvironment, folder: Path, said: pytest.LogCaptureFixture
) -> None:
    with _left(broken, folder) as process:
        assert os.getpgid(process.pid) != os.getpgid(0), "it outlives the task"
        variables = Path(f"/proc/{process.pid}/environ").read_bytes()
        assert PASSWORD.encode() not in variables
    assert "it is being made in the background" in said.text

    (note,) = folder.glob("spark-*.failed")
    assert "exit code 3" in note.read_text()
    assert PASSWORD not in note.read_text()
    assert not list(folder.glob("*.jsa"))
    said.clear()
    assert leave_maker(folder, broken, VARIABLES) is None
    assert f"it could not be made, see {note}" in said.text

    os.utime(note, (0, 0))
    with _left(broken, folder):
        said.clear()


def test_one_at_a_time(
    broken: SparkEnvironment, folder: Path, said: pytest.LogCaptureFixture
) -> None:
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert leave_maker(folder, broken, VARIABLES) is None
    assert "it is being made" in said.text
    assert "in the background" not in said.text


def test_a_folder_that_is_no_own_one(
    broken: SparkEnvironment, folder: Path, said: pytest.LogCaptureFixture
) -> None:
    folder.chmod(0o777)
    assert leave_maker(folder, broken, VARIABLES) is None
    assert "it cannot be made: others may write to" in said.text
    (folder / "file").touch()
    assert leave_maker(folder / "file" / "archives", broken, VARIABLES) is None
    assert "Not a directory" in said.text


@pytest.mark.slow
@pytest.mark.extended
def test_it_makes_an_archive(folder: Path) -> None:
    environment = SparkEnvironment.at(os.environ["MERGE_SPARK_ENV"], "spark_env")
    variables = {**os.environ, SECRET: PASSWORD}
    with _left(environment, folder, variables) as process:
        assert os.getpriority(os.PRIO_PROCESS, process.pid) in (0, 19)
    assert archive_in(folder, archive_key(environment, os.environ)).path.stat().st_size > 1 << 26


def _left(
    environment: SparkEnvironment, folder: Path, variables: dict[str, str] = VARIABLES
) -> subprocess.Popen[bytes]:
    process = leave_maker(folder, environment, variables)
    assert process is not None
    return process
