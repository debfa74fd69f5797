"""Names of tables as catalogs list them."""

from __future__ import annotations

from collections.abc import Iterable

from spark_jobs.contract.request import TableName
from spark_jobs.errors import RequestError


def listed_names(database: str, names: Iterable[str]) -> list[TableName]:
    """The tables of a database, without those whose names no table here can have."""
    tables: list[TableName] = []
    for name in names:
        try:
            tables.append(TableName(database, name))
        except RequestError:
            continue
    return tables
