"""Tables of AWS Glue, which moto plays, and the connector on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.spi.connector import Connector
from tests.support.stores import REGION, ObjectStore


@dataclass(frozen=True)
class GlueTables:
    """The databases of a server, whose tables lie in ``warehouse``."""

    store: ObjectStore
    warehouse: str

    def options(self, uri: str = "") -> dict[str, str]:
        return {
            "type": "glue",
            "uri": uri or self.store.endpoint,
            "warehouse": self.warehouse,
            "client.region": REGION,
            "s3.endpoint": self.store.endpoint,
        }

    @property
    def keys(self) -> dict[str, str]:
        """What login and password of a connection become."""
        return {
            "client.access-key-id": self.store.access_key,
            "client.secret-access-key": self.store.secret_key,
        }

    def spec(self, uri: str = "", **options: str) -> CatalogSpec:
        return CatalogSpec("iceberg", self.warehouse, {**self.options(uri), **options})

    def open(self, uri: str = "", **options: str) -> Connector:
        return open_connector(self.spec(uri, **options), self.keys)

    def library(self) -> Any:
        """Pyiceberg's catalog; to make a client of Amazon's takes longer than what it is for."""
        return self._library

    @cached_property
    def _library(self) -> Any:
        from pyiceberg.catalog.glue import GlueCatalog

        own = {"glue.endpoint": self.store.endpoint}
        return GlueCatalog("library", **self.options(), **self.keys, **own)

    def drop_all(self) -> None:
        """Remove the database ``db`` and its tables; their files stay."""
        catalog = self.library()
        for name in catalog.list_tables("db"):
            catalog.drop_table(name)
        catalog.drop_namespace("db")


def before_commits(connector: Connector, do: Callable[[Any], Any]) -> None:
    """Let something happen when a commit is about to be sent; what it returns is its answer."""
    client = connector.writes.catalog.opened.glue  # type: ignore[attr-defined]
    client.meta.events.register("before-send.glue.UpdateTable", lambda request, **_: do(request))
