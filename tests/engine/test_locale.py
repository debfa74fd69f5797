"""A driver whose Java knows no names but in ASCII, as under LC_ALL=C, reads nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_RUN = """
import sys
from pathlib import Path
from spark_jobs.contract.inserts import InsertIntoSpec
from spark_jobs.contract.request import CatalogSpec, FileSource, JobRequest, TableName
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.run import run
from tests.support.spark_session import local_session

folder = Path(sys.argv[1])
(folder / "warehouse").mkdir()
catalog, table = CatalogSpec("paimon", str(folder / "warehouse")), TableName("db", "t")
files = FileSource("s", str(folder / "landing"), "csv", {"header": "true"}, "id BIGINT")
created = CreateTableSpec((ColumnSpec("id", "BIGINT"),))
assert run(JobRequest("create", table, catalog, created), None).error is None
with local_session(folder / "spark") as spark:
    run(JobRequest("insert", table, catalog, InsertIntoSpec("s"), (files,)), spark)
"""


@pytest.mark.slow
def test_nothing_is_read_without_a_utf8_locale(tmp_path: Path) -> None:
    (tmp_path / "landing").mkdir()
    for number, name in enumerate(["a.csv", "münchen.csv"]):
        (tmp_path / "landing" / name).write_text(f"id\n{number}\n")

    done = subprocess.run(
        [sys.executable, "-c", _RUN, str(tmp_path)],
        cwd=_ROOT,
        env={**os.environ, "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    stored = json.loads((tmp_path / "warehouse" / "_operations" / "insert.json").read_text())
    assert stored["error"]["code"] == "LOCALE_MISSING", stored["error"]
    assert "ANSI_X3.4-1968" in stored["error"]["message"]
    assert not [*tmp_path.glob("warehouse/db.db/t/snapshot/*")]
