"""What the hooks of all catalog connections have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

from airflow.providers.common.compat.sdk import BaseHook, Connection

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.hooks.connection_forms import SPARK_CATALOG_NAME
from airflow_provider_merge.hooks.connections import own_connection
from airflow_provider_merge.hooks.metadata_reads import MetadataReads
from airflow_provider_merge.links import filled_page
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.errors import JobError


class ConnectionSettings(Protocol):
    """A connection as the options of a catalog and of its storage; methods are as the hook's."""

    def catalog_spec(self) -> CatalogSpec:
        """Warehouse, workspace and catalog options."""
        ...

    def credentials(self) -> dict[str, str]:
        """The options that are secret."""
        ...

    def workspace_options(self) -> dict[str, Any]:
        """How fsspec opens the workspace."""
        ...


class ConnectionPages(ABC):
    """Fills in the fields ``ui_url`` and ``quarantine-url`` of a hook's connection."""

    catalog_conn_id: str

    @abstractmethod
    def _connection(self) -> Connection:
        """The connection; raises RequestError without one."""

    def snapshot_page(self, target: TableName, snapshot_id: int) -> str:
        """The web page of a snapshot: ``ui_url``, filled in; empty without it.

        Raises:
            RequestError: ``ui_url`` is not a web page, or has a secret or unknown placeholder.
        """
        names = {"database": target.database, "table": target.table}
        return self._page("ui_url", **names, snapshot_id=snapshot_id)

    def quarantine_page(self, path: str) -> str:
        """The web page of a file of quarantined records: ``quarantine-url``; empty without it.

        Raises:
            RequestError: ``quarantine-url`` is not a web page, or has a secret or unknown
                placeholder.
        """
        return self._page("quarantine-url", path=path)

    def _page(self, field: str, **values: Any) -> str:
        template = self._connection().extra_dejson.get(field)
        if not template:
            return ""
        return filled_page(f"connection {self.catalog_conn_id!r}, {field}", str(template), **values)


class ConnectionHook(ConnectionPages, MetadataReads, BaseHook):
    """Reads a connection of one of the types ``conn_types``, and the metadata of its tables.

    ``conn_type`` is the one whose form the provider brings.
    """

    conn_name_attr = "catalog_conn_id"
    default_conn_name: str
    conn_type: str
    conn_types: tuple[str, ...]

    def __init__(
        self, catalog_conn_id: str | None = None, connection: Connection | None = None
    ) -> None:
        super().__init__()
        default = self.default_conn_name
        self.catalog_conn_id = default if catalog_conn_id is None else catalog_conn_id
        # An event loop fetches connections itself, without blocking.
        self._given = connection

    def catalog_spec(self) -> CatalogSpec:
        """Warehouse, workspace and catalog options, without any secret.

        Raises:
            NotSupportedError: a catalog that is not opened.
            RequestError: REQUEST_INVALID, naming the connection and the field.
        """
        return self._settings().catalog_spec()

    def credentials(self) -> dict[str, str]:
        """The catalog options that are secret, or may be, by the names that the library has."""
        return self._settings().credentials()

    def require_catalog(self, table: TableName) -> None:
        """Check that what the table's name calls its catalog is this connection's.

        Raises:
            RequestError: REQUEST_INVALID, naming the connection's field.
        """
        if not table.catalog:
            return
        own = str(self._connection().extra_dejson.get(SPARK_CATALOG_NAME) or "").strip()
        if table.catalog == own:
            return
        problem = f"is {own!r}" if own else "is empty"
        raise invalid(
            f"connection {self.catalog_conn_id!r}, {SPARK_CATALOG_NAME}",
            f"{problem}, and {table.catalog}.{table} is in the catalog {table.catalog}",
            f"Write {table}, or {table.catalog} into the connection's extra, {SPARK_CATALOG_NAME}.",
        )

    def workspace_options(self) -> dict[str, Any]:
        """Arguments of the fsspec file system of the workspace; holds secrets."""
        return self._settings().workspace_options()

    def test_connection(self) -> tuple[bool, str]:
        """Whether this connection reaches the catalog, and a message that says what is there."""
        try:
            self.snapshot_page(TableName("database", "table"), 1)
            self.quarantine_page("/path")
            return True, self._reached()
        except JobError as error:
            return False, str(error)

    @abstractmethod
    def _reached(self) -> str:
        """What is found behind the connection; raises JobError if nothing is."""

    @abstractmethod
    def _settings(self) -> ConnectionSettings:
        """The connection; raises RequestError without one."""

    def _connection(self) -> Connection:
        return own_connection(self.catalog_conn_id, self.conn_types, self._given)
