"""Jobs get a UTF-8 locale that the worker has; without one, no Spark is started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_provider_merge.submit import locales
from airflow_provider_merge.submit.locales import charset, utf8_variables
from airflow_provider_merge.submit.spark_submit import SparkSubmitSubmitter
from airflow_provider_merge.submit.submitter import SparkJob, SparkSettings
from spark_jobs.errors import CatalogError, ErrorCode
from tests.airflow.launcher import Launcher
from tests.airflow.support import connection, example_request

# Hawaiian stands for what no image has.
MISSING = "haw_US.UTF-8"
WITHOUT = {
    "nothing is set": {},
    "C": {"LC_ALL": "C"},
    "POSIX": {"LC_ALL": "POSIX"},
    "C wins over LANG": {"LC_ALL": "C", "LANG": "C.UTF-8"},
    "LC_ALL is not installed": {"LC_ALL": MISSING},
    "LANG is not installed": {"LANG": MISSING, "LC_ALL": ""},
    "one category is not installed": {"LANG": "C.UTF-8", "LC_TIME": MISSING},
    "the characters of a Mac": {"LC_CTYPE": "UTF-8"},
    "not even text": {"LC_ALL": "\udcff"},
}
WITH = {
    "LC_ALL": {"LC_ALL": "C.UTF-8", "LANG": "C"},
    "another spelling": {"LANG": "C.utf8"},
    "only the characters": {"LANG": "C", "LC_CTYPE": "C.UTF-8"},
}


@pytest.fixture
def launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Launcher:
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    connection(monkeypatch, "spark_default", conn_type="spark", host="local[2]")
    return Launcher.make(tmp_path / "env")


def submit(launcher: Launcher, **settings: Any) -> None:
    settings = {"spark_env": str(launcher.folder), **settings}
    SparkSubmitSubmitter(SparkSettings(**settings)).submit(SparkJob("d.t", example_request()))


@pytest.mark.parametrize("variables", WITHOUT.values(), ids=WITHOUT)
def test_a_locale_that_is_not_utf8_gives_way(variables: dict[str, str]) -> None:
    assert utf8_variables(variables) == {"LC_ALL": "C.UTF-8"}


@pytest.mark.parametrize("variables", WITH.values(), ids=WITH)
def test_a_utf8_locale_stays(variables: dict[str, str]) -> None:
    assert utf8_variables(variables) == {}


def test_character_sets() -> None:
    assert charset("C.UTF-8") == "UTF-8"
    assert charset("C") != "UTF-8"
    assert charset(MISSING) is None


def test_a_job_gets_the_locale(launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", MISSING)
    submit(launcher)
    assert launcher.seen["environment"]["LC_ALL"] == "C.UTF-8"


def test_executors_get_the_usual_one_unless_conf_names_another(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection(monkeypatch, "spark_default", conn_type="spark", host="spark://host:7077")
    submit(launcher)
    assert launcher.conf["spark.executorEnv.LC_ALL"] == "C.UTF-8"
    launcher.record.unlink()
    submit(launcher, conf={"spark.executorEnv.LC_ALL": "en_US.UTF-8"})
    assert launcher.conf["spark.executorEnv.LC_ALL"] == "en_US.UTF-8"


def test_a_worker_without_any_starts_nothing(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locales, "charset", {"C": "ANSI_X3.4-1968"}.get)
    with pytest.raises(CatalogError, match="no UTF-8 locale") as caught:
        submit(launcher)
    assert caught.value.code is ErrorCode.LOCALE_MISSING
    assert not launcher.record.exists()


def test_the_list_of_installed_locales_is_the_last_resort(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where neither C.UTF-8 nor English is, but another one."""
    script = tmp_path / "locale"
    script.write_text("#!/bin/sh\necho C; echo POSIX; echo nb_NO.utf8\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(locales, "charset", {"nb_NO.utf8": "UTF-8", "C": "ANSI"}.get)
    assert utf8_variables({}) == {"LC_ALL": "nb_NO.utf8"}
