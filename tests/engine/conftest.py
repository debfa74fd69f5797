from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from spark_jobs.contract.request import CatalogSpec
from tests.conformance.conftest import make_table, seeds
from tests.support.iceberg_files import catalog_spec

__all__ = ["make_table", "seeds"]


@pytest.fixture(params=["paimon", "iceberg"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> CatalogSpec:
    """An empty catalog of each format."""
    folder = tmp_path / "warehouse"
    folder.mkdir()
    if request.param == "paimon":
        return CatalogSpec("paimon", str(folder))
    spec = catalog_spec(folder)
    return replace(spec, options={**spec.options, "init_catalog_tables": "true"})
