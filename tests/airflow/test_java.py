"""A worker without a Java for its Spark is told so before anything is submitted."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_merge.submit.java import require_java
from airflow_provider_merge.submit.spark_environment import SparkEnvironment
from airflow_provider_merge.submit.spark_submit import SparkSubmitSubmitter
from airflow_provider_merge.submit.submitter import SparkJob, SparkSettings
from spark_jobs.errors import CatalogError, ErrorCode
from tests.airflow.launcher import Launcher
from tests.airflow.support import connection, example_request


def spark(folder: Path, version: str) -> SparkEnvironment:
    """An environment whose pyspark says that version."""
    home = folder / "pyspark"
    (home / "conf").mkdir(parents=True)
    (home / "version.py").write_text(f"# By the release\n__version__: str = '{version}'\n")
    return SparkEnvironment(folder / "bin" / "python", home)


def java(folder: Path, release: str | None = None, says: str = "exit 1") -> dict[str, str]:
    """The variables of a worker with that Java; without ``release`` it must be started to tell."""
    script = folder / "jdk" / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(f"#!/bin/sh\necho x >> {folder}/started\n{says}\n")
    script.chmod(0o755)
    if release is not None:
        (folder / "jdk" / "release").write_text(f'IMPLEMENTOR="A"\nJAVA_VERSION="{release}"\n')
    return {"JAVA_HOME": str(folder / "jdk"), "PATH": "/bin"}


def refused(environment: SparkEnvironment, variables: dict[str, str]) -> str:
    with pytest.raises(CatalogError) as raised:
        require_java(environment, variables)
    assert raised.value.code is ErrorCode.JAVA_NOT_FOUND
    assert not raised.value.retryable
    return raised.value.message


@pytest.mark.parametrize(
    ("version", "release"),
    [("4.1.4", "17.0.15"), ("4.0.1", "21"), ("3.5.6", "1.8.0_402"), ("4.3.0", "25.0.3")],
)
def test_a_java_that_fits_is_not_started(tmp_path: Path, version: str, release: str) -> None:
    require_java(spark(tmp_path, version), java(tmp_path, release))

    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(
    ("version", "release", "found"),
    [("4.1.4", "11.0.2", "11"), ("4.1.4", "25.0.3", "25"), ("4.0.0", "1.8.0_402", "8")],
)
def test_a_java_that_does_not_fit_is_named(
    tmp_path: Path, version: str, release: str, found: str
) -> None:
    message = refused(spark(tmp_path, version), java(tmp_path, release))

    assert f"Spark {version[:3]} needs Java 17 or 21" in message
    assert f"{tmp_path}/jdk/bin/java is Java {found}" in message
    assert f"JAVA_HOME is {tmp_path}/jdk" in message


def test_a_java_without_a_release_file_tells_its_version_once(tmp_path: Path) -> None:
    says = """echo 'openjdk version "11.0.2" 2019-01-15' >&2"""
    environment, variables = spark(tmp_path, "4.1.4"), java(tmp_path, says=says)

    for _ in range(2):
        assert "is Java 11" in refused(environment, variables)

    assert (tmp_path / "started").read_text().count("x") == 1


def test_a_java_that_does_not_run(tmp_path: Path) -> None:
    assert "bin/java does not run" in refused(spark(tmp_path, "4.1.4"), java(tmp_path))


@pytest.mark.parametrize(
    ("variables", "where"),
    [
        ({"PATH": "/nowhere"}, "JAVA_HOME is not set, so PATH was searched"),
        ({"PATH": "/nowhere", "JAVA_HOME": "/no/jdk"}, "JAVA_HOME is /no/jdk"),
    ],
)
def test_no_java(tmp_path: Path, variables: dict[str, str], where: str) -> None:
    message = refused(spark(tmp_path, "4.1.4"), variables)

    assert "needs Java 17 or 21, and there is none" in message
    assert where in message


def test_a_spark_that_chooses_its_java_itself_is_left_alone(tmp_path: Path) -> None:
    environment = spark(tmp_path, "4.1.4")
    (environment.spark_home / "conf" / "spark-env.sh").write_text("export JAVA_HOME=/opt/jdk\n")

    require_java(environment, {"PATH": "/nowhere"})


@pytest.mark.parametrize(("host", "mode"), [("local[2]", "client"), ("yarn", "cluster")])
def test_nothing_is_submitted_without_a_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, mode: str
) -> None:
    connection(monkeypatch, "spark_default", conn_type="spark", host=host)
    monkeypatch.setenv("JAVA_HOME", "/no/jdk")
    launcher = Launcher.make(tmp_path / "env")
    (submit,) = launcher.folder.rglob("spark-submit")
    (submit.parents[1] / "version.py").write_text("__version__ = '4.1.4'\n")
    settings = SparkSettings(spark_env=str(launcher.folder), deploy_mode=mode)

    with pytest.raises(CatalogError, match="JAVA_NOT_FOUND"):
        SparkSubmitSubmitter(settings).submit(SparkJob("dag.task", example_request()))

    assert not launcher.record.exists()
