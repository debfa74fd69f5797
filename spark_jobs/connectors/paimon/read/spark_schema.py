"""The columns of a table as Spark reads them. Driver only."""

from __future__ import annotations

import re

from spark_jobs.contract.sql_text import quote
from spark_jobs.spi.tables import Column, TableHandle


def spark_schema(table: TableHandle) -> str:
    """All columns as Spark reads them, in DDL form."""
    return ", ".join(f"{quote(c.name)} {_spark_readable(c)}" for c in table.columns)


def _spark_readable(column: Column) -> str:
    """The column's type with STRING for CHAR and VARCHAR, which a reader's schema cannot have."""
    return re.sub(r"\b(?:var)?char\(\d+\)", "string", column.type)
