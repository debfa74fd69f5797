"""Tables that pyiceberg makes, without a JVM, and the connector on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.spi.connector import Connector
from tests.support.optional_packages import require_package

NAME = TableName("db", "t")


@dataclass(frozen=True)
class PlainCatalog:
    """A SQL catalog on a file in ``folder``."""

    folder: Path

    @property
    def options(self) -> dict[str, str]:
        require_package("sqlalchemy")
        return {
            "type": "sql",
            "uri": f"sqlite:///{self.folder}/catalog.db",
            "warehouse": f"file://{self.folder}",
            "catalog-name": "plain",
        }

    def open(self, **options: str) -> Connector:
        spec = CatalogSpec("iceberg", str(self.folder), {**self.options, **options})
        return open_connector(spec, {})

    def library(self) -> Any:
        require_package("sqlalchemy")
        from pyiceberg.catalog.sql import SqlCatalog

        return SqlCatalog("plain", uri=self.options["uri"], warehouse=self.options["warehouse"])

    def create(self, schema: Any, properties: Mapping[str, str], rows: pa.Table | None) -> Any:
        """The table ``db.t``, of pyiceberg."""
        catalog = self.library()
        catalog.create_namespace_if_not_exists("db")
        table = catalog.create_table(("db", "t"), schema, properties=dict(properties))
        if rows is not None:
            table.append(rows)
        return table
