"""Commands for people in terminals that know nothing but ASCII."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[3]


def test_a_check_prints_names_that_its_terminal_cannot_show(tmp_path: Path) -> None:
    folder, warehouse = tmp_path / "sql", tmp_path / "warehouse"
    folder.mkdir()
    warehouse.mkdir()
    (folder / "gr\u00f6\u00dfe.sql").write_text(
        "DELETE FROM shop.`gr\u00f6\u00dfe`", encoding="utf-8"
    )
    connection = {"conn_type": "paimon", "extra": {"warehouse": str(warehouse)}}

    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "airflow_provider_merge", "check", str(folder)],
        env={
            **os.environ,
            "AIRFLOW_HOME": str(tmp_path / "airflow"),
            "AIRFLOW_CONN_PAIMON_DEFAULT": json.dumps(connection),
            "PYTHONIOENCODING": "ascii",
        },
        cwd=_ROOT,
        capture_output=True,
        check=False,
    )

    assert done.returncode == 1, done.stderr
    assert b"TABLE_NOT_FOUND: " in done.stdout
    assert b"files: 1, with errors: 1" in done.stdout
    assert done.stdout.isascii()
