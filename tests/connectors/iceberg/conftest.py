"""A catalog that Spark with Iceberg fills, and the connector on a module's own catalog."""

from __future__ import annotations

import pytest

from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.plain_tables import PlainCatalog
from tests.judge.iceberg_spark import iceberg_spark

__all__ = ["iceberg_spark"]


@pytest.fixture
def connector(catalog: PlainCatalog) -> Connector:
    """On the catalog that the module's fixture of that name makes."""
    return catalog.open()
