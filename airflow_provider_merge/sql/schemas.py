"""The columns of a Spark DDL string, such as the ``schema`` of a file source."""

from __future__ import annotations

from airflow_provider_merge.sql.trees import DIALECT, tree_of


def columns_of_schema(schema: str) -> dict[str, str] | None:
    """The columns of ``id BIGINT, name STRING``, name → type; None if it is not understood."""
    from sqlglot import exp

    table = tree_of(f"CREATE TABLE x ({schema})")
    if not isinstance(table, exp.Create) or not isinstance(table.this, exp.Schema):
        return None
    kinds = {c.name: c.kind for c in table.this.expressions if isinstance(c, exp.ColumnDef)}
    known = {name: kind.sql(dialect=DIALECT) for name, kind in kinds.items() if kind is not None}
    return known if len(known) == len(kinds) else None
