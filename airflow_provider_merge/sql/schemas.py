"""The columns of a Spark DDL string, such as the ``schema`` of a file source."""

from __future__ import annotations

from typing import Any

_DIALECT = "spark"


def columns_of_schema(schema: str) -> dict[str, str] | None:
    """The columns of ``id BIGINT, name STRING``, name → type; None if it is not understood."""
    from sqlglot import exp, parse_one

    try:
        table: Any = parse_one(f"CREATE TABLE x ({schema})", dialect=_DIALECT)
        columns: list[Any] = [c for c in table.this.expressions if isinstance(c, exp.ColumnDef)]
        return {each.name: each.kind.sql(dialect=_DIALECT) for each in columns}
    except Exception:  # noqa: BLE001 - a parser of others; without the columns less is known
        return None
