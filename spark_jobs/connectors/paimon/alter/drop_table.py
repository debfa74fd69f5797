"""DROP TABLE of Paimon's tables, whose files go with them. Driver only."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.format.external_paths import OPTION
from spark_jobs.connectors.paimon.library import rest_catalog, table_schema
from spark_jobs.connectors.paimon.metadata import PaimonMetadata
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.connectors.shared.table.drops import drop_noted
from spark_jobs.contract.drop_table import DropTableSpec
from spark_jobs.contract.request import TableName
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi.alterations import ChangeNote
from spark_jobs.spi.connector import find_table
from spark_jobs.storage.files import remove_file, remove_folder
from spark_jobs.storage.warehouse import Warehouse

_FIRST: Final = "snapshot"
_LAST: Final = "schema"


def drop_table(
    metadata: PaimonMetadata,
    storage: Warehouse,
    catalog: Any | None,
    name: TableName,
    spec: DropTableSpec,
    note: ChangeNote,
) -> bool:
    """Drop the table with its files, by a request to the server of ``catalog`` if it has one.

    Raises as ``ConnectorAlterations.drop_table``.
    """
    table = _existing(metadata, name)

    def drop() -> None:
        if table is None:
            return
        if catalog is None:
            _remove(storage, table)
        else:
            rest_catalog.drop_table(catalog, table.table)

    return drop_noted(name, spec, partial(_identity, table), drop, note)


def _existing(metadata: PaimonMetadata, name: TableName) -> PinnedTable | None:
    handle = find_table(metadata, name)
    if handle is None:
        return None
    table = pinned_table(handle)
    if table.options.get(OPTION):
        raise NotSupportedError(
            f"{name} has files in other folders (option {OPTION}), which tables may share.",
            "Drop it with the engine that made it.",
        )
    return table


def _identity(table: PinnedTable | None) -> str | None:
    return None if table is None else str(table_schema.identity(table.table, 0))


def _remove(storage: Warehouse, table: PinnedTable) -> None:
    """Remove the folder: first the snapshots, and then it is an empty table; last its schemas.

    So a retry still finds the table that is half removed, and no later table finds its snapshots.
    """
    files, root = storage.filesystem, table.path
    remove_folder(files, f"{root}/{_FIRST}")
    for info in _inside(storage, root):
        if info.base_name == _LAST:
            continue
        if info.type is pafs.FileType.Directory:
            remove_folder(files, info.path)
        else:
            remove_file(files, info.path)
    remove_folder(files, f"{root}/{_LAST}")
    # Its name may be taken again at once: then the folder is that of another table.
    if not _inside(storage, root):
        remove_folder(files, root)


def _inside(storage: Warehouse, root: str) -> list[pafs.FileInfo]:
    return list(storage.filesystem.get_file_info(pafs.FileSelector(root, allow_not_found=True)))
