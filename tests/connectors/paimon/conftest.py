"""A connector on an empty warehouse, and whether Paimon's own Java can judge it."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.spi.connector import Connector
from tests.judge.conftest import java

__all__ = ["java"]


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    path = tmp_path / "ware house"
    path.mkdir()
    return path


@pytest.fixture
def connector(warehouse: Path) -> Connector:
    return open_connector(CatalogSpec("paimon", str(warehouse)), {})
