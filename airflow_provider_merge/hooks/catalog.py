"""What an operator needs from a catalog connection, and which hook reads which connection type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook, Connection

from airflow_provider_merge.hooks.connections import missing, require_type
from airflow_provider_merge.hooks.iceberg import IcebergHook
from airflow_provider_merge.hooks.paimon import PaimonHook
from airflow_provider_merge.metadata.definition import TableDefinition
from airflow_provider_merge.metadata.reader import TableReader
from spark_jobs.contract.alter_table import AlterTableSpec
from spark_jobs.contract.maintenance import BranchStatement
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import CreateTableSpec

if TYPE_CHECKING:
    from airflow_provider_merge.metadata.page_facts import PageFacts


class CatalogHook(Protocol):
    """A connection as the catalog that a job opens."""

    def catalog_spec(self) -> CatalogSpec:
        """Connector, warehouse, workspace and options, without any secret.

        Raises:
            RequestError: REQUEST_INVALID, naming the connection and the field.
        """
        ...

    def require_catalog(self, table: TableName) -> None:
        """Check that what the table's name calls its catalog is this connection's.

        Raises:
            RequestError: REQUEST_INVALID, naming the connection's field.
        """
        ...

    def credentials(self) -> Mapping[str, str]:
        """The catalog options that are secret, by name; empty where access is ambient."""
        ...

    def storage_options(self) -> Mapping[str, Any]:
        """How fsspec opens the warehouse; holds secrets."""
        ...

    def workspace_options(self) -> Mapping[str, Any]:
        """How fsspec opens the workspace; holds secrets."""
        ...

    def recorded_result(self, target: TableName, operation_id: str) -> JobResult | None:
        """What the target's snapshots tell of an operation whose job stored no result.

        None: nothing is known, either because there is no such snapshot or because the catalog
        alone knows where the table lies.

        Raises:
            CatalogError: METADATA_UNREADABLE.
            RequestError: no file system of the warehouse's scheme is installed beside Airflow.
        """
        ...

    def table(self, name: str | TableName) -> TableReader:
        """The metadata of a table, ``database.table``, as it is from here on.

        Raises:
            CatalogError: TABLE_NOT_FOUND, WAREHOUSE_ACCESS_DENIED.
            InternalError: STORAGE_UNAVAILABLE.
            NotSupportedError: the table cannot be read from here.
            RequestError: the name or the connection is wrong.
        """
        ...

    def table_names(self, most: int) -> list[TableName]:
        """The catalog's tables by name, at most so many; raises as ``table`` does."""
        ...

    def page_facts(self, table: Any) -> PageFacts:
        """What the pages about tables show of one of this hook's tables besides."""
        ...

    def definition(self, target: TableName) -> TableDefinition:
        """What checks ask of a table: its newest schema and properties, read once.

        Raises:
            JobError: the table or its metadata cannot be read from here.
            OSError: the storage refused.
        """
        ...

    def is_reserved(self, column: str) -> bool:
        """Whether the table format has a use of its own for columns of this name."""
        ...

    def refuse_statement(
        self, statement: CreateTableSpec | AlterTableSpec | BranchStatement
    ) -> None:
        """Refuse what no table of the format can have, or what its branches have no use for.

        Raises:
            NotSupportedError: naming it.
        """
        ...

    def snapshot_page(self, target: TableName, snapshot_id: int) -> str:
        """The page where people see a snapshot; empty where the connection names none.

        Raises:
            RequestError: REQUEST_INVALID, naming the connection and the field.
        """
        ...

    def quarantine_page(self, path: str) -> str:
        """The page where people see a file of quarantined records; empty where none is named.

        Raises:
            RequestError: REQUEST_INVALID, naming the connection and the field.
        """
        ...

    def release_guard(self, target: TableName, operation_id: str) -> None:
        """Forget on which snapshot an operation built whose result is stored.

        Raises:
            OSError: the storage refused.
        """
        ...


# connection type → hook; a new table format adds its line here.
_HOOKS: dict[str, Callable[..., CatalogHook]] = {
    **dict.fromkeys(IcebergHook.conn_types, IcebergHook),
    **dict.fromkeys(PaimonHook.conn_types, PaimonHook),
}


def catalog_hook(conn_id: str) -> CatalogHook:
    """The hook that reads the connection ``conn_id``.

    Raises:
        RequestError: REQUEST_INVALID when there is no such connection, or of no known type.
    """
    hook, _ = _found(conn_id)
    return hook(conn_id)


def catalog_hook_once(conn_id: str) -> CatalogHook:
    """As ``catalog_hook``; the connection is read only once.

    Raises:
        RequestError: REQUEST_INVALID when there is no such connection, or of no known type.
    """
    hook, connection = _found(conn_id)
    return hook(conn_id, connection)


def _found(conn_id: str) -> tuple[Callable[..., CatalogHook], Connection]:
    """The hook's class for the connection ``conn_id``, and the connection."""
    try:
        connection = BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        raise missing(conn_id, _HOOKS) from None
    return _HOOKS[require_type(conn_id, connection, _HOOKS)], connection


def other_table(hook: CatalogHook, connection: str | None, name: str) -> TableReader:
    """A table of the catalog of ``hook``, or of that of another connection.

    Raises: as ``CatalogHook.table`` and ``catalog_hook``.
    """
    return (hook if connection is None else catalog_hook(connection)).table(name)


def catalog_types() -> frozenset[str]:
    """The connection types that have a hook here."""
    return frozenset(_HOOKS)


async def catalog_hook_async(conn_id: str) -> CatalogHook:
    """As ``catalog_hook``, without blocking an event loop; the connection is read only once.

    Raises:
        RequestError: REQUEST_INVALID when there is no such connection, or of no known type.
    """
    try:
        connection = await BaseHook.aget_connection(conn_id)
    except AirflowNotFoundException:
        raise missing(conn_id, _HOOKS) from None
    return _HOOKS[require_type(conn_id, connection, _HOOKS)](conn_id, connection)
