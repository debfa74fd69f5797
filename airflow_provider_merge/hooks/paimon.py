"""The connection type ``paimon``: an Apache Paimon catalog."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_merge.hooks.connection_hook import ConnectionHook
from airflow_provider_merge.hooks.paimon_connection import (
    CONNECTION_TYPE,
    WORKSPACE,
    PaimonConnection,
)
from airflow_provider_merge.metadata.paimon.definition import PaimonDefinition
from airflow_provider_merge.metadata.paimon.folders import names_in
from airflow_provider_merge.metadata.paimon.rest_catalog import RestCatalog
from airflow_provider_merge.metadata.paimon.snapshots import PaimonSnapshots
from airflow_provider_merge.metadata.paimon.table import PaimonTable
from airflow_provider_merge.storage.failures import reaching
from airflow_provider_merge.storage.files import list_names
from airflow_provider_merge.storage.warehouse import require_folder
from airflow_provider_merge.table_names import parse_table_name
from spark_jobs.contract.alter_table import AlterTableSpec
from spark_jobs.contract.maintenance import BranchStatement
from spark_jobs.contract.properties import result_of_snapshot
from spark_jobs.contract.request import TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import CreateTableSpec
from spark_jobs.errors import CatalogError
from spark_jobs.formats.paimon.branches import refuse_statement
from spark_jobs.formats.paimon.definitions import is_reserved, refuse_change, refuse_transforms
from spark_jobs.formats.paimon.options import (
    METASTORE,
    REST,
    REST_WAREHOUSE,
    TOKEN,
    URI,
    WAREHOUSE,
)

if TYPE_CHECKING:
    from airflow_provider_merge.metadata.paimon.page_facts import PaimonPageFacts


_SHOWN = 10


class PaimonHook(ConnectionHook):
    """Reads a ``paimon`` connection and the metadata of its tables, without Spark.

    Fields: ``warehouse`` (absolute path or URI), ``workspace`` (where jobs leave results and
    temporary files; default: the warehouse), ``metastore`` (filesystem or rest), ``uri`` (of the
    rest metastore), ``endpoint`` and ``region`` (of the object store), ``options`` (further catalog
    options, a JSON object), ``ui_url`` (a web page of a snapshot, with the placeholders
    ``{database}``, ``{table}`` and ``{snapshot_id}``), ``quarantine-url`` (a web page of a file of
    quarantined rows, with ``{path}``); login and password are access key and secret key. Guides:
    docs/connection.md and docs/gates.md.
    """

    default_conn_name = "paimon_default"
    conn_type = CONNECTION_TYPE
    conn_types = (CONNECTION_TYPE,)
    hook_name = "Apache Paimon"

    def storage_options(self) -> dict[str, Any]:
        """Arguments of the fsspec file system of the warehouse; holds secrets."""
        return self._settings().storage_options()

    def table(self, name: str | TableName) -> PaimonTable:
        """The metadata of a table, ``database.table`` or ``database.table$branch_name``.

        Raises:
            CatalogError: TABLE_NOT_FOUND, WAREHOUSE_NOT_FOUND, WAREHOUSE_ACCESS_DENIED.
            InternalError: STORAGE_UNAVAILABLE.
            NotSupportedError: a rest catalog whose server issues storage keys.
            RequestError: the name or the connection is invalid.
        """
        warehouse = self.catalog_spec().warehouse
        target = name if isinstance(name, TableName) else parse_table_name(name, "table")
        self.require_catalog(target)
        server = self._server()
        location = server.location(target) if server else None
        with reaching(warehouse):
            if location is not None:
                return PaimonTable.at(location, target, self.storage_options())
            try:
                return PaimonTable.find(warehouse, target, self.storage_options())
            except CatalogError:
                # Without a warehouse there is no table, either.
                require_folder(warehouse, self.storage_options())
                raise

    def table_names(self, most: int) -> list[TableName]:
        """The catalog's tables by name, at most so many; raises as ``table`` does."""
        warehouse, server = self.catalog_spec().warehouse, self._server()
        if server is not None:
            return server.tables(most)
        options = self.storage_options()
        require_folder(warehouse, options)
        with reaching(warehouse):
            return names_in(warehouse, options, most)

    def page_facts(self, table: PaimonTable) -> PaimonPageFacts:
        """What the pages about tables show besides."""
        # Not for every DAG file that is parsed.
        from airflow_provider_merge.metadata.paimon.page_facts import PaimonPageFacts

        return PaimonPageFacts(table)

    def recorded_result(self, target: TableName, operation_id: str) -> JobResult | None:
        """The result of an operation, from the target's snapshots, if its job stored none.

        Raises:
            CatalogError: METADATA_UNREADABLE.
            RequestError: no file system for the warehouse's scheme is installed next to Airflow.
        """
        snapshots = self._snapshots_of(target)
        snapshot = snapshots.made_by(operation_id) if snapshots else None
        if snapshot is None:
            return None
        return result_of_snapshot(str(target), snapshot.snapshot_id, snapshot.properties)

    def definition(self, target: TableName) -> PaimonDefinition:
        """What checks ask of a table. Raises as ``schema`` does."""
        return PaimonDefinition(target, self.schema(target))

    def is_reserved(self, column: str) -> bool:
        """Whether Paimon has a use of its own for columns of this name."""
        return is_reserved(column)

    def refuse_statement(
        self, statement: CreateTableSpec | AlterTableSpec | BranchStatement
    ) -> None:
        """Refuse what no table of Paimon can have; raises NotSupportedError."""
        if isinstance(statement, CreateTableSpec):
            refuse_transforms(statement.partitioned_by())
        elif isinstance(statement, BranchStatement):
            refuse_statement(statement)
        else:
            for change in statement.changes:
                refuse_change(change)

    def release_guard(self, target: TableName, operation_id: str) -> None:
        """Remove the guard of an operation whose result is stored: its base snapshot may expire.

        Raises:
            OSError: the storage refused.
        """
        snapshots = self._snapshots_of(target)
        if snapshots:
            snapshots.release(operation_id)

    def _reached(self) -> str:
        spec = self.catalog_spec()
        warehouse = spec.warehouse
        if spec.workspace:
            require_folder(spec.workspace, self.workspace_options(), WORKSPACE)
        server = self._server()
        if server:
            known = f"The catalog's server at {server.uri} knows {server.warehouse}."
            names = server.databases()
            return known if names is None else f"{known} {_databases_text(names)}"
        require_folder(warehouse, self.storage_options())
        with reaching(warehouse):
            names = list_names(warehouse, self.storage_options())
        databases = sorted(name.removesuffix(".db") for name in names if name.endswith(".db"))
        return f"{warehouse} can be read. {_databases_text(databases)}"

    def _snapshots_of(self, target: TableName) -> PaimonSnapshots | None:
        """The target's snapshots; None for a rest catalog, where no guards are searched for."""
        options = self._settings().options()
        if options[METASTORE] == REST:
            return None
        return PaimonSnapshots.find(options[WAREHOUSE], target, self.storage_options())

    def _server(self) -> RestCatalog | None:
        """The server of a rest catalog; None: the catalog has none."""
        settings = self._settings()
        options = settings.options()
        if options[METASTORE] != REST:
            return None
        warehouse = options.get(REST_WAREHOUSE) or options.get(WAREHOUSE, "")
        return RestCatalog(options[URI], warehouse, settings.credentials().get(TOKEN, ""))

    def _settings(self) -> PaimonConnection:
        return PaimonConnection(self.catalog_conn_id, self._connection())


def _databases_text(names: Sequence[str]) -> str:
    """The databases of a catalog in a sentence; of many, the first ones."""
    if not names:
        return "It has no databases."
    more = len(names) - _SHOWN
    rest = f", and {more:,} more" if more > 0 else ""
    what = "database" if len(names) == 1 else "databases"
    return f"It has {len(names):,} {what}: {', '.join(names[:_SHOWN])}{rest}."
