"""Connectors are found by name and say what is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.connector import Connector

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


@pytest.mark.parametrize("form", ["{0}", "{0}/", "file://{0}"])
def test_a_local_warehouse_may_be_a_path_or_a_uri(warehouse: Path, form: str) -> None:
    text = form.format(str(warehouse).replace(" ", "%20") if "file" in form else warehouse)

    storage = open_connector(CatalogSpec("paimon", text), {}).storage

    assert storage.root == str(warehouse)
    assert storage.uri == f"file://{warehouse}"


def test_other_storage_and_catalogs_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"oss://bucket/wh is on storage of the kind oss"):
        open_connector(CatalogSpec("paimon", "oss://bucket/wh"), {})
    with pytest.raises(JobError, match="metastore = jdbc"):
        open_connector(CatalogSpec("paimon", str(tmp_path), {"metastore": "jdbc"}), {})


def test_a_missing_warehouse_is_an_error_and_is_not_made(tmp_path: Path) -> None:
    missing = tmp_path / "missing"

    with pytest.raises(JobError, match="does not exist") as raised:
        open_connector(CatalogSpec("paimon", str(missing)), {})

    assert raised.value.code is ErrorCode.WAREHOUSE_NOT_FOUND
    assert not missing.exists()


def test_a_warehouse_that_goes_away_is_noticed_and_not_made_again(
    connector: Connector, warehouse: Path
) -> None:
    from tests.support.paimon_tables import NAME

    warehouse.rmdir()

    with pytest.raises(JobError, match="does not exist") as raised:
        connector.metadata.load_table(NAME)

    assert raised.value.code is ErrorCode.WAREHOUSE_NOT_FOUND
    assert not warehouse.exists()
