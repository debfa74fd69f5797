"""What the Spark environment lacks, or has in an untested version, is told before Spark starts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from airflow_provider_merge.submit.plain_python import PlainPythonSubmitter
from airflow_provider_merge.submit.spark_submit import SparkSubmitSubmitter
from airflow_provider_merge.submit.submitter import SparkJob, SparkSettings
from spark_jobs.contract.arguments import VERSIONS_TOLD
from spark_jobs.errors import CatalogError, ErrorCode
from tests.airflow.launcher import Launcher
from tests.airflow.support import connection, example_request

SUBMITTERS = {"spark": SparkSubmitSubmitter, "python": PlainPythonSubmitter}


@pytest.fixture(params=SUBMITTERS)
def submitter(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, submitter: str) -> Launcher:
    connection(monkeypatch, "spark_default", conn_type="spark", host="local[2]")
    make = Launcher.make if submitter == "spark" else Launcher.of_python
    return make(tmp_path / "env")


def submit(launcher: Launcher, submitter: str, **settings: object) -> None:
    chosen = SparkSettings(spark_env=str(launcher.folder), **settings)  # type: ignore[arg-type]
    SUBMITTERS[submitter](chosen).submit(SparkJob("dag.task", example_request()))


def remove(launcher: Launcher, name: str) -> None:
    """Uninstall it; the environment's Python, a real one, does not find it either."""
    (about,) = launcher.folder.rglob(f"{name}-*.dist-info")
    shutil.rmtree(about)
    python = launcher.folder / "bin" / "python"
    python.unlink()
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)


@pytest.mark.parametrize(
    ("name", "requirement"),
    [("pypaimon", "pypaimon>=2.1,<2.2"), ("pyarrow", "pyarrow>=18,!=19.0.0,<20")],
)
def test_nothing_is_submitted_without_a_library(
    launcher: Launcher, submitter: str, name: str, requirement: str
) -> None:
    remove(launcher, name)

    with pytest.raises(CatalogError) as raised:
        submit(launcher, submitter)

    assert raised.value.code is ErrorCode.LIBRARY_MISSING
    assert not raised.value.retryable
    assert f"{launcher.folder} does not have the Python package {name}" in raised.value.message
    assert f"{launcher.folder}/bin/pip install '{requirement}'" in raised.value.remedy
    assert not launcher.record.exists()


def test_the_library_of_another_format_is_not_needed(launcher: Launcher, submitter: str) -> None:
    remove(launcher, "pyiceberg")
    if submitter == "python":
        (launcher.folder / "bin" / "python").unlink()
        shutil.copy(next(launcher.folder.rglob("spark-submit")), launcher.folder / "bin" / "python")

    submit(launcher, submitter)

    assert launcher.record.exists()


@pytest.mark.parametrize(
    ("version", "warned"), [("26.0.1", True), ("19.0.0", True), ("18.1.0", False)]
)
def test_an_untested_version_is_told_once(
    launcher: Launcher,
    submitter: str,
    version: str,
    warned: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (about,) = launcher.folder.rglob("pyarrow-*.dist-info/METADATA")
    about.write_text(f"Version: {version}\n")

    submit(launcher, submitter)

    text = f"pyarrow {version} is outside of the versions that were tested, >=18,!=19.0.0,<20"
    assert (text in caplog.text) is warned
    assert VERSIONS_TOLD in launcher.arguments


def test_what_a_broken_off_installation_left_is_no_library(
    launcher: Launcher, submitter: str
) -> None:
    (about,) = launcher.folder.rglob("pyarrow-*.dist-info")
    (about.parent / "pyarrow-0.0.0.dist-info").mkdir()

    submit(launcher, submitter)

    assert VERSIONS_TOLD in launcher.arguments


class TestElsewhere:
    """What may come from elsewhere is left to the driver, which tells versions itself."""

    @pytest.fixture(params=["spark"])
    def submitter(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)

    @pytest.mark.parametrize("name", ["spark.submit.pyFiles", "spark.pyspark.driver.python"])
    def test_by_conf(self, launcher: Launcher, submitter: str, name: str) -> None:
        remove(launcher, "pypaimon")

        submit(launcher, submitter, conf={name: "/opt/other"})

        assert VERSIONS_TOLD not in launcher.arguments

    def test_by_sparks_own_settings(
        self, launcher: Launcher, submitter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        remove(launcher, "pypaimon")
        (tmp_path / "spark-defaults.conf").write_text("spark.submit.pyFiles /opt/libraries.zip\n")
        monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))

        submit(launcher, submitter)

        assert VERSIONS_TOLD not in launcher.arguments

    def test_by_pythons_path(
        self, launcher: Launcher, submitter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (about,) = launcher.folder.rglob("pypaimon-*.dist-info")
        shutil.rmtree(about)
        (tmp_path / "modules" / "pypaimon").mkdir(parents=True)
        (tmp_path / "modules" / "pypaimon" / "__init__.py").touch()
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "modules"))

        submit(launcher, submitter)

        assert VERSIONS_TOLD not in launcher.arguments

    def test_on_a_cluster(
        self, launcher: Launcher, submitter: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        remove(launcher, "pypaimon")
        connection(monkeypatch, "spark_default", conn_type="spark", host="yarn")

        submit(launcher, submitter, deploy_mode="cluster")

        assert VERSIONS_TOLD not in launcher.arguments
