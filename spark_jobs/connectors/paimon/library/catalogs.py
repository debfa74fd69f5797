"""Opening a catalog and its tables with pypaimon. Driver only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from spark_jobs.connectors.paimon.library.checked_files import CheckedFiles
from spark_jobs.connectors.paimon.library.table_paths import table_path
from spark_jobs.connectors.paimon.library.table_schema import CheckedSchemas
from spark_jobs.contract.request import TableName


def open_catalog(options: Mapping[str, str]) -> Any:
    """The catalog that the options describe; does not check that the warehouse exists."""
    from pypaimon import CatalogFactory

    return CatalogFactory.create(dict(options))


def find_table(catalog: Any, name: TableName) -> Any | None:
    """The table with its latest schema; None if it or its database does not exist.

    If no table has exactly this name, it is the only one with this name in another case. The branch
    in a name such as ``table$branch_b`` must match exactly.
    """
    from pypaimon.catalog.catalog_exception import DatabaseNotExistException, TableNotExistException

    try:
        return _opened(catalog, name)
    except DatabaseNotExistException:
        return None
    except TableNotExistException:
        spelled = _in_another_case(catalog, name)
    try:
        return _opened(catalog, spelled) if spelled else None
    except TableNotExistException:
        return None


def _opened(catalog: Any, name: TableName) -> Any:
    table = catalog.get_table(_identifier(name))
    table.file_io = CheckedFiles(table.file_io)
    table.schema_manager = CheckedSchemas(table.schema_manager, table_path(table))
    return table


def _in_another_case(catalog: Any, name: TableName) -> TableName | None:
    from pypaimon.catalog.catalog_exception import DatabaseNotExistException

    try:
        tables = catalog.list_tables(name.database)
    except DatabaseNotExistException:
        return None
    table, *branch = name.table.split("$", 1)
    same = [each for each in tables if each.lower() == table.lower()]
    return replace(name, table="$".join([*same, *branch])) if len(same) == 1 else None


def _identifier(name: TableName) -> Any:
    from pypaimon.common.identifier import Identifier

    return Identifier.create(name.database, name.table)
