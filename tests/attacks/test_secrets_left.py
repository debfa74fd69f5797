"""What a job leaves of its secrets in the operator's folder, from its first moment on: nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.inserts import TruncateTableSpec
from spark_jobs.contract.job_lines import (
    answer_name,
    asking_operation,
    begun_phase,
    new_line_secret,
    without_secret,
)
from spark_jobs.contract.request import CatalogSpec, JobRequest
from tests.attacks.running_job import ROOT
from tests.support.paimon_tables import NAME, append, create, snapshot_ids

OPERATION = "clear-1"


@pytest.fixture
def lake(tmp_path: Path) -> CatalogSpec:
    catalog = CatalogSpec("paimon", str(tmp_path / "lake"))
    (tmp_path / "lake").mkdir()
    connector = open_connector(catalog, {})
    create(connector, {"id": "int"})
    append(connector, [{"id": 1}])
    return catalog


def run(folder: Path, lake: CatalogSpec, credentials: Path) -> str:
    """What a job prints whose operator has ``folder``."""
    request = JobRequest(OPERATION, NAME, lake, TruncateTableSpec())
    (folder / "request.json").write_text(request.to_json())
    (folder / answer_name(OPERATION)).touch()
    credentials.write_text(json.dumps({"key": "a secret"}))
    command = [sys.executable, "-m", "spark_jobs.main", "--no-session", "--answers", str(folder)]
    command += ["--request", str(folder / "request.json"), "--credentials", str(credentials)]

    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )

    assert done.returncode == 0, done.stdout
    assert snapshot_ids(open_connector(lake, {})) == [1, 2]
    return done.stdout


@pytest.mark.slow
def test_a_job_takes_its_secrets_and_leaves_no_file(tmp_path: Path, lake: CatalogSpec) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    secret = new_line_secret(folder)
    assert [path.stat().st_mode & 0o777 for path in folder.iterdir()] == [0o600]

    printed = run(folder, lake, folder / "credentials.json")

    assert [path.name for path in folder.iterdir()] == ["request.json"]
    lines = [without_secret(secret, line) for line in printed.splitlines()]
    own = [text for text, is_own in lines if is_own]
    assert [asking_operation(text) for text in own if not begun_phase(text)] == [OPERATION]


@pytest.mark.slow
def test_files_of_others_stay(tmp_path: Path, lake: CatalogSpec) -> None:
    folder = tmp_path / "job"
    folder.mkdir()

    run(folder, lake, tmp_path / "mine.json")

    assert (tmp_path / "mine.json").exists()
