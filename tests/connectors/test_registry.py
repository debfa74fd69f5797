"""Connectors are found by name and say what is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.errors import ErrorCode, JobError

ROOT = Path(__file__).resolve().parents[2]


def test_an_unknown_connector_is_named_with_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="'delta' is not known") as raised:
        open_connector(CatalogSpec("delta", str(tmp_path)), {})

    assert raised.value.code is ErrorCode.REQUEST_INVALID
    assert "paimon" in raised.value.remedy


def test_a_missing_table_library_is_an_error_with_an_install_hint(tmp_path: Path) -> None:
    program = f"""
import sys
sys.modules["pypaimon"] = None
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.errors import JobError
try:
    open_connector(CatalogSpec("paimon", {str(tmp_path)!r}), {{}})
except JobError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert done.stdout.startswith("LIBRARY_MISSING: The paimon connector needs")
    assert "pip install 'pypaimon>=2.1,<2.2'" in done.stdout
