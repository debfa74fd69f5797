"""The package that goes to Spark, and packages of the same name that would hide it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from airflow_provider_merge import job_package
from airflow_provider_merge.operators.create_table import CreateTableOperator, column

ROOT = Path(__file__).resolve().parents[2]


def test_zip_is_the_same_every_time(tmp_path: Path) -> None:
    for name in ("a.zip", "b.zip"):
        job_package.write_zip(tmp_path / name)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_zip_holds_the_package_and_nothing_else(tmp_path: Path) -> None:
    job_package.write_zip(tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        names = archive.namelist()
    assert names == sorted(names)
    assert "spark_jobs/__init__.py" in names
    assert "spark_jobs/contract/request.py" in names
    assert all(name.startswith("spark_jobs/") and "__pycache__" not in name for name in names)


def test_zip_is_importable(tmp_path: Path) -> None:
    job_package.write_zip(tmp_path / "a.zip")
    code = "import spark_jobs.contract.request as r; print(r.__file__)"
    done = _python(code, tmp_path, tmp_path / "a.zip")
    assert str(tmp_path / "a.zip") in done.stdout


@pytest.mark.parametrize("form", ["package", "module"])
def test_hiding_package_is_named(tmp_path: Path, form: str) -> None:
    other = _other(tmp_path, form)
    done = _python("import airflow_provider_merge.operators.merge_into", tmp_path, tmp_path, ROOT)
    assert done.returncode != 0
    assert "ShadowedPackageError" in done.stderr
    assert str(ROOT / "spark_jobs") in done.stderr
    assert str(other) in done.stderr


@pytest.mark.parametrize("form", ["package", "module"])
def test_hidden_package_is_named_where_a_task_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    other = _other(tmp_path, form)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path[1:], str(tmp_path)])
    with pytest.raises(job_package.ShadowedPackageError) as caught:
        CreateTableOperator(task_id="t", target="a.b", columns=[column("id", "INT")])
    assert str(ROOT / "spark_jobs") in str(caught.value)
    assert str(other) in str(caught.value)


def test_folder_of_scripts_hides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spark_jobs").mkdir()
    (tmp_path / "spark_jobs" / "etl.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    CreateTableOperator(task_id="t", target="a.b", columns=[column("id", "INT")])


def _other(folder: Path, form: str) -> Path:
    if form == "module":
        (folder / "spark_jobs.py").write_text("")
        return folder / "spark_jobs.py"
    (folder / "spark_jobs").mkdir()
    (folder / "spark_jobs" / "__init__.py").write_text("")
    return folder / "spark_jobs"


def _python(code: str, cwd: Path, *path: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
