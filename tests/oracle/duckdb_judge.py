"""DuckDB as a judge of the oracle, for statements in which both mean the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import duckdb

from tests.oracle.dialects import DuckDb
from tests.oracle.expressions import Expression, Row
from tests.oracle.merge import (
    Clause,
    Delete,
    Insert,
    InsertAll,
    Merge,
    TableColumn,
    Update,
    UpdateAll,
)
from tests.oracle.statements import DeleteFrom, Statement

_DIALECT = DuckDb()
_WHEN = {
    "matched": "MATCHED",
    "not_matched": "NOT MATCHED",
    "not_matched_by_source": "NOT MATCHED BY SOURCE",
}


def run(
    statement: Statement,
    columns: Sequence[TableColumn],
    target: Sequence[Row],
    source_columns: Sequence[TableColumn],
    source: Sequence[Row],
) -> list[Row]:
    """The rows of the target after the statement.

    Raises:
        duckdb.Error: a value cannot be stored.

    """
    with duckdb.connect() as connection:
        _create(connection, "target", columns, target)
        _create(connection, "source", source_columns, source)
        connection.execute(to_sql(statement, columns))
        cursor = connection.execute("SELECT * FROM target")
        names = [column.name for column in columns]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def to_sql(statement: Statement, columns: Sequence[TableColumn]) -> str:
    """The statement as DuckDB spells it."""
    if isinstance(statement, Merge):
        return _merge(statement, [column.name for column in columns])
    where = "" if statement.where is None else f" WHERE {statement.where.to_sql(_DIALECT)}"
    if isinstance(statement, DeleteFrom):
        return f"DELETE FROM target AS t{where}"
    return f"UPDATE target AS t SET {_assigned(statement.assignments)}{where}"


def _merge(merge: Merge, names: list[str]) -> str:
    clauses = "\n".join(_clause(clause, names) for clause in merge.clauses)
    on = merge.on.to_sql(_DIALECT)
    return f"MERGE INTO target AS t USING source AS s ON ({on})\n{clauses}"


def _clause(clause: Clause, names: list[str]) -> str:
    condition = f" AND {clause.condition.to_sql(_DIALECT)}" if clause.condition else ""
    return f"WHEN {_WHEN[clause.when]}{condition} THEN {_action(clause, names)}"


def _action(clause: Clause, names: list[str]) -> str:
    match clause.action:
        case Delete():
            return "DELETE"
        case Update(assignments):
            return f"UPDATE SET {_assigned(assignments)}"
        case UpdateAll():
            return f"UPDATE SET {_set((name, _source(name)) for name in names)}"
        case Insert(values, chosen):
            texts = [value.to_sql(_DIALECT) for value in values]
            return f"INSERT {_list(chosen or names)} VALUES ({', '.join(texts)})"
        case InsertAll():
            return f"INSERT {_list(names)} VALUES ({', '.join(map(_source, names))})"
    raise AssertionError(clause)


def _assigned(assignments: Iterable[tuple[str, Expression]]) -> str:
    return _set((name, value.to_sql(_DIALECT)) for name, value in assignments)


def _set(assignments: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f'"{name}" = {text}' for name, text in assignments)


def _source(name: str) -> str:
    return _DIALECT.column("s", name, bare=False)


def _list(names: Iterable[str]) -> str:
    return "(" + ", ".join(f'"{name}"' for name in names) + ")"


def _create(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    columns: Sequence[TableColumn],
    rows: Sequence[Row],
) -> None:
    definitions = ", ".join(
        f'"{column.name}" {column.type.removesuffix("_NTZ")}'
        f"{'' if column.nullable else ' NOT NULL'}"
        for column in columns
    )
    connection.execute(f"CREATE TABLE {name} ({definitions})")
    if rows:
        marks = "(" + ", ".join("?" for _ in columns) + ")"
        values = [row[column.name] for row in rows for column in columns]
        connection.execute(f"INSERT INTO {name} VALUES {', '.join([marks] * len(rows))}", values)
