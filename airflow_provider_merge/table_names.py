"""Names of tables as people write them."""

from __future__ import annotations

from typing import Any

from airflow_provider_merge.exceptions import invalid
from spark_jobs.contract.request import TableName
from spark_jobs.contract.sql_text import quote
from spark_jobs.errors import RequestError


def parse_table_name(text: Any, field: str) -> TableName:
    """The table behind ``db.table``, or ``catalog.db.table``.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``.
    """
    if not isinstance(text, str):
        raise invalid(field, "missing" if text is None else "expected text", "Write db.table.")
    try:
        return TableName.parse(text)
    except RequestError as error:
        raise error.within(field) from None


def quoted_name(table: TableName) -> str:
    """``database.table`` in backticks."""
    return ".".join(quote(part) for part in (table.database, table.table))
