"""The connection types ``lakehouse_iceberg``, and ``iceberg`` of Airflow's own provider."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from airflow_provider_merge.hooks.connection_hook import ConnectionHook
from airflow_provider_merge.hooks.iceberg_connection import (
    CONNECTION_TYPES,
    OWN_TYPE,
    WORKSPACE,
    IcebergConnection,
)
from airflow_provider_merge.metadata.iceberg.catalogs import IcebergCatalog
from airflow_provider_merge.metadata.iceberg.definition import IcebergDefinition
from airflow_provider_merge.metadata.iceberg.table import IcebergTable
from airflow_provider_merge.storage.failures import reaching
from airflow_provider_merge.storage.files import remove
from airflow_provider_merge.storage.remote import storage_arguments
from airflow_provider_merge.storage.warehouse import require_folder
from airflow_provider_merge.table_names import parse_table_name
from spark_jobs.contract.alter_table import AlterTableSpec
from spark_jobs.contract.maintenance import BranchStatement
from spark_jobs.contract.operation_files import base_path
from spark_jobs.contract.properties import result_of_snapshot
from spark_jobs.contract.request import TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import CreateTableSpec
from spark_jobs.errors import CatalogError, ErrorCode, RequestError
from spark_jobs.formats.iceberg.options import storage_options
from spark_jobs.formats.iceberg.reserved import is_reserved

if TYPE_CHECKING:
    from airflow_provider_merge.metadata.iceberg.base_notes import BaseNotes
    from airflow_provider_merge.metadata.iceberg.page_facts import IcebergPageFacts


_SHOWN: Final = 10
_NO_WORKSPACE: Final = (
    f" {WORKSPACE} is empty, which every operator needs, for results and temporary files of its "
    "job; sensors and pages do not."
)


class IcebergHook(ConnectionHook):
    """Reads a connection to an Iceberg catalog, and the metadata of its tables, without Spark.

    Fields: host (the catalog's address), login and password (of an OAuth 2 client or a database, or
    a key of AWS), and as extra the properties of pyiceberg's catalogs; besides ``workspace`` (where
    jobs leave results and temporary files; default: the warehouse), ``catalog-name`` (of a SQL
    catalog; default: the connection's id), ``ui_url`` (a web page of a snapshot, with the
    placeholders ``{database}``, ``{table}`` and ``{snapshot_id}``) and ``quarantine-url`` (a web
    page of a file of quarantined rows, with ``{path}``). Guides: docs/iceberg.md and docs/gates.md.
    """

    default_conn_name = "iceberg_default"
    conn_type = OWN_TYPE
    conn_types = CONNECTION_TYPES
    hook_name = "Apache Iceberg (Lakehouse MERGE)"

    def storage_options(self) -> dict[str, Any]:
        """Arguments of the fsspec file system of the warehouse; holds secrets."""
        options = storage_options(self._settings().all_options())
        return storage_arguments(self.catalog_spec().warehouse, options)

    def table(self, name: str | TableName) -> IcebergTable:
        """The metadata of a table, ``database.table`` or ``database.table$branch_name``.

        A namespace of several levels is written in backticks: ``a.b`` in one pair.

        Raises:
            CatalogError: TABLE_NOT_FOUND, METADATA_UNREADABLE, WAREHOUSE_ACCESS_DENIED,
                LIBRARY_MISSING.
            InternalError: STORAGE_UNAVAILABLE.
            NotSupportedError: the catalog is not opened.
            RequestError: the name or the connection is invalid.
        """
        target = name if isinstance(name, TableName) else parse_table_name(name, "table")
        self.require_catalog(target)
        catalog = self._catalog
        with reaching(catalog.place):
            return IcebergTable.of(target, catalog.load(target))

    def table_names(self, most: int) -> list[TableName]:
        """The catalog's tables by name, at most so many; raises as ``table`` does."""
        catalog = self._catalog
        with reaching(catalog.place):
            return catalog.tables(most)

    def page_facts(self, table: IcebergTable) -> IcebergPageFacts:
        """What the pages about tables show besides."""
        # Not for every DAG file that is parsed.
        from airflow_provider_merge.metadata.iceberg.page_facts import IcebergPageFacts

        return IcebergPageFacts(table, self._base_notes)

    def recorded_result(self, target: TableName, operation_id: str) -> JobResult | None:
        """The result of an operation, from the target's snapshots, if its job stored none.

        Raises:
            CatalogError: METADATA_UNREADABLE, WAREHOUSE_ACCESS_DENIED.
            InternalError: STORAGE_UNAVAILABLE.
        """
        try:
            snapshot = self.table(target).made_by(operation_id)
        except CatalogError as error:
            if error.code is not ErrorCode.TABLE_NOT_FOUND:
                raise
            return None
        if snapshot is None:
            return None
        return result_of_snapshot(str(target), snapshot.snapshot_id, snapshot.properties)

    def definition(self, target: TableName) -> IcebergDefinition:
        """What checks ask of a table. Raises as ``schema`` does."""
        table = self.table(target)
        return IcebergDefinition(target, table.schema(), table.loaded.metadata)

    def is_reserved(self, column: str) -> bool:
        """Whether Iceberg has a use of its own for columns of this name."""
        return is_reserved(column)

    def refuse_statement(
        self, statement: CreateTableSpec | AlterTableSpec | BranchStatement
    ) -> None:
        """Refuse nothing: what a statement may ask for, some table of Iceberg can have."""

    def release_guard(self, target: TableName, operation_id: str) -> None:
        """Remove the note of the snapshot on which an operation built whose result is stored.

        Raises:
            OSError: the storage refused.
        """
        del target
        place = self.catalog_spec().workspace_location
        remove(f"{place}/{base_path(operation_id)}", self.workspace_options())

    def _reached(self) -> str:
        settings, catalog = self._settings(), self._catalog
        more = "" if settings.place() else _NO_WORKSPACE
        if (workspace := settings.workspace()) is not None:
            require_folder(workspace, settings.workspace_options(), WORKSPACE)
        with reaching(catalog.place):
            names = catalog.namespaces()
        shown = ", ".join(names[:_SHOWN]) or "none"
        return f"{catalog.place} answers. Its namespaces: {shown}.{more}"

    @cached_property
    def _base_notes(self) -> BaseNotes | None:
        """The notes of jobs; None: no job can use this connection, or leave a note."""
        from airflow_provider_merge.metadata.iceberg.base_notes import BaseNotes

        settings = self._settings()
        try:
            place, options = (
                settings.catalog_spec().workspace_location,
                settings.workspace_options(),
            )
        except RequestError:
            return None
        return BaseNotes(place, options)

    @cached_property
    def _catalog(self) -> IcebergCatalog:
        settings = self._settings()
        settings.require_no_password()
        return IcebergCatalog(settings.all_options())

    def _settings(self) -> IcebergConnection:
        return IcebergConnection(self.catalog_conn_id, self._connection())
