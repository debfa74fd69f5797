"""Assignments to struct fields: collected per column, then composed into one new value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from pyspark.sql.types import DataType, StructField, StructType

from spark_jobs.contract.identifiers import quote
from spark_jobs.engine.analysis.expressions import Expression, subquery_columns
from spark_jobs.errors import AnalysisError, ErrorCode

Assigned = Expression | dict[str, "Assigned"]


def field_path(column: str, type_: DataType, names: list[str], where: str) -> tuple[str, ...]:
    """The path of declared field names below ``column`` that ``names`` spells in any case.

    Raises:
        AnalysisError: COLUMN_NOT_FOUND or AMBIGUOUS_REFERENCE.
    """
    path: list[str] = []
    for name in names:
        place = ".".join([column, *path])
        if not isinstance(type_, StructType):
            raise AnalysisError(
                ErrorCode.COLUMN_NOT_FOUND,
                f"{where}: {place} is {type_.simpleString()}, which has no field {name} that could "
                "be assigned",
                f"Assign {place} as a whole.",
            )
        fields = [field for field in type_ if field.name.lower() == name.lower()]
        if len(fields) != 1:
            code = ErrorCode.AMBIGUOUS_REFERENCE if fields else ErrorCode.COLUMN_NOT_FOUND
            raise AnalysisError(
                code,
                f"{where}: {place} has {len(fields) or 'no'} field{'s' * bool(fields)} {name}",
                f"Its fields are: {', '.join(type_.fieldNames())}.",
            )
        path.append(fields[0].name)
        type_ = fields[0].dataType
    return tuple(path)


def assign(values: dict[str, Assigned], path: tuple[str, ...], new: Expression, where: str) -> None:
    """Put ``new`` at ``path`` (a column, then fields) into ``values``.

    Raises:
        AnalysisError: DUPLICATE_ASSIGNMENT to one path, or to a struct and its field.
    """
    here = values
    for depth, name in enumerate(path[:-1], start=1):
        below = here.setdefault(name, {})
        if isinstance(below, Expression):
            raise _both_assigned(path[:depth], path, where)
        here = below
    taken = here.get(path[-1])
    if isinstance(taken, dict):
        raise _both_assigned(path, (*path, *_first_path(taken)), where)
    if taken is not None:
        raise AnalysisError(
            ErrorCode.DUPLICATE_ASSIGNMENT,
            f"{where}: {'.'.join(path)} is assigned twice",
            "Give each column or field one value.",
        )
    here[path[-1]] = new


def composed(old: Expression, fields: dict[str, Assigned]) -> Expression:
    """The struct ``old`` with new values for ``fields``; if ``old`` is NULL, so are the others."""
    parts = list(_parts(old, fields))
    items = ", ".join(f"(\n{part.text}\n) AS {quote(name)}" for name, part in parts)
    return Expression(
        text=f"struct({items})",
        target_columns=old.target_columns.union(*(part.target_columns for _, part in parts)),
        source_columns=old.source_columns.union(*(part.source_columns for _, part in parts)),
        type=StructType([StructField(name, part.type) for name, part in parts]),
        deterministic=all(part.deterministic for _, part in parts),
        subquery_columns=subquery_columns(part for _, part in parts),
        given_fields=tuple(_given(fields)),
    )


def _parts(old: Expression, fields: dict[str, Assigned]) -> Iterator[tuple[str, Expression]]:
    # field_path has checked that it is a struct.
    for field in cast("StructType", old.type):
        before = Expression(
            text=f"{old.text}.{quote(field.name)}",
            target_columns=old.target_columns,
            source_columns=old.source_columns,
            type=field.dataType,
            deterministic=True,
        )
        new = fields.get(field.name, before)
        yield field.name, composed(before, new) if isinstance(new, dict) else new


def _given(fields: dict[str, Assigned]) -> Iterator[tuple[str, ...]]:
    for name, new in fields.items():
        below = _given(new) if isinstance(new, dict) else [()]
        yield from ((name, *path) for path in below)


def _first_path(fields: dict[str, Assigned]) -> tuple[str, ...]:
    name, below = next(iter(fields.items()))
    return (name, *_first_path(below)) if isinstance(below, dict) else (name,)


def _both_assigned(struct: tuple[str, ...], field: tuple[str, ...], where: str) -> AnalysisError:
    return AnalysisError(
        ErrorCode.DUPLICATE_ASSIGNMENT,
        f"{where}: both {'.'.join(struct)} and its field {'.'.join(field)} are assigned",
        "Assign the struct as a whole, or its fields one by one.",
    )
