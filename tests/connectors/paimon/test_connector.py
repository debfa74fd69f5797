"""Opening a connector: which warehouses and catalogs there are, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.connector import Connector
from tests.support.paimon_tables import NAME


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
    warehouse.rmdir()

    with pytest.raises(JobError, match="does not exist") as raised:
        connector.metadata.load_table(NAME)

    assert raised.value.code is ErrorCode.WAREHOUSE_NOT_FOUND
    assert not warehouse.exists()
