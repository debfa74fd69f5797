"""The tables of a filesystem catalog, which are folders: ``<warehouse>/<database>.db/<table>``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from airflow_provider_merge.metadata.listed import listed_names
from airflow_provider_merge.storage.files import list_names
from airflow_provider_merge.storage.locations import child
from spark_jobs.contract.request import TableName

_SUFFIX: Final = ".db"


def names_in(warehouse: str, storage_options: Mapping[str, Any], most: int) -> list[TableName]:
    """The names by database and table, at most so many; which of them are tables is not looked up.

    Raises:
        OSError: the storage cannot be reached.
    """
    tables: list[TableName] = []
    for folder in sorted(list_names(warehouse, storage_options)):
        database = folder.removesuffix(_SUFFIX)
        if database in (folder, ""):
            continue
        names = sorted(list_names(child(warehouse, folder), storage_options))
        tables += listed_names(database, (name for name in names if not name.startswith(".")))
        if len(tables) >= most:
            break
    return tables[:most]
