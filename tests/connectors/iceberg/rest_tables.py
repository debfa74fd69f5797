"""Tables of Iceberg's own REST server, and the connector on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.spi.connector import Connector
from tests.judge.iceberg_server import IcebergRest


@dataclass(frozen=True)
class RestTables:
    """The table ``db.t`` on a server."""

    server: IcebergRest

    def spec(self, uri: str = "") -> CatalogSpec:
        options = {"type": "rest", "uri": uri or self.server.uri}
        return CatalogSpec("iceberg", str(self.server.folder), options)

    def open(self, uri: str = "") -> Connector:
        return open_connector(self.spec(uri), {"token": self.server.secret})

    def library(self) -> Any:
        from pyiceberg.catalog import load_catalog

        return load_catalog("rest", **self.server.properties)

    def emptied(self) -> Any:
        """Pyiceberg's catalog, which has the namespace, but no table."""
        self.server.folder.mkdir(exist_ok=True)
        catalog = self.library()
        catalog.create_namespace_if_not_exists("db")
        if catalog.table_exists(("db", "t")):
            catalog.drop_table(("db", "t"))
        return catalog
