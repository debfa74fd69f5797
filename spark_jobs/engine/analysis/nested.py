"""Struct fields in assignments: collected per column, then composed into one new value.

Fields that a value lacks are filled in (docs/semantics.md, Schema evolution). On UPDATE, such a
field keeps the value that it has in the row; elsewhere, and within arrays and maps, whose elements
have no counterpart in the row, it is NULL.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import cast

from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StructField, StructType

from spark_jobs.contract.sql_text import quote
from spark_jobs.engine.analysis.expressions import Expression, subquery_columns
from spark_jobs.engine.runtime.sql_text import find_name
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


def completed(value: Expression, wanted: DataType, old: Expression | None) -> Expression:
    """``value`` with the fields of ``wanted`` that it lacks; ``old`` is what the row has now.

    A value that is NULL becomes a struct if ``old`` has values in fields that ``value`` lacks; so
    these are never lost. Fields that may not be NULL are not filled in.
    """
    if not value.deterministic or not _lacks(value.type, wanted):
        return value
    filled = _completed(_Value(value.text, value.type, old.text if old else None), wanted, 0)
    kept = frozenset() if old is None else old.target_columns
    return replace(
        value,
        text=filled.text,
        long=None,
        type=filled.type,
        target_columns=value.target_columns | kept,
    )


@dataclass(frozen=True, slots=True)
class _Value:
    """The text and type of an expression, and the text of what the row has now, if anything."""

    text: str
    type: DataType
    old: str | None

    def field(self, mine: str, wanted: str) -> _Value:
        old = None if self.old is None else f"{self.old}.{quote(wanted)}"
        type_ = cast("StructType", self.type)[mine].dataType
        return _Value(f"{self.text}.{quote(mine)}", type_, old)


def _lacks(given: DataType, wanted: DataType) -> bool:
    """Whether a struct somewhere in ``given`` has fewer fields than in ``wanted``."""
    if isinstance(given, StructType) and isinstance(wanted, StructType):
        return any(
            mine is None or _lacks(given[mine].dataType, each.dataType)
            for each, mine in _pairs(given, wanted)
        )
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        return _lacks(given.elementType, wanted.elementType)
    if isinstance(given, MapType) and isinstance(wanted, MapType):
        return _lacks(given.valueType, wanted.valueType)
    return False


def _pairs(given: StructType, wanted: StructType) -> Iterator[tuple[StructField, str | None]]:
    for each in wanted:
        yield each, find_name(each.name, given.fieldNames())


def _completed(value: _Value, wanted: DataType, depth: int) -> _Value:
    if not _lacks(value.type, wanted):
        return value
    if isinstance(value.type, StructType) and isinstance(wanted, StructType):
        return _struct(value, value.type, wanted, depth)
    item = f"__merge_item_{depth}"
    if isinstance(value.type, ArrayType) and isinstance(wanted, ArrayType):
        element = _Value(item, value.type.elementType, None)
        inner = _completed(element, wanted.elementType, depth + 1)
        text = f"transform({value.text}, {item} -> {inner.text})"
        return _Value(text, ArrayType(inner.type), None)
    given, held = cast("MapType", value.type), cast("MapType", wanted)
    inner = _completed(_Value(item, given.valueType, None), held.valueType, depth + 1)
    text = f"transform_values({value.text}, (__merge_key_{depth}, {item}) -> {inner.text})"
    return _Value(text, MapType(given.keyType, inner.type), None)


def _struct(value: _Value, given: StructType, wanted: StructType, depth: int) -> _Value:
    parts: list[tuple[str, str, DataType]] = []
    for field, mine in _pairs(given, wanted):
        if mine is not None:
            inner = _completed(value.field(mine, field.name), field.dataType, depth)
            parts.append((field.name, inner.text, inner.type))
        elif value.old is not None:
            parts.append((field.name, f"{value.old}.{quote(field.name)}", field.dataType))
        elif field.nullable:
            parts.append((field.name, "NULL", NullType()))
    more = [each for each in given if find_name(each.name, wanted.fieldNames()) is None]
    parts += [(f.name, f"{value.text}.{quote(f.name)}", f.dataType) for f in more]
    struct = ", ".join(f"(\n{text}\n) AS {quote(name)}" for name, text, _ in parts)
    missing = [f"{value.text} IS NULL", *(f"{old} IS NULL" for old in _kept(value, wanted))]
    text = f"IF({' AND '.join(missing)}, NULL, struct({struct}))"
    return _Value(text, StructType([StructField(n, kind) for n, _, kind in parts]), value.old)


def _kept(value: _Value, wanted: DataType) -> Iterator[str]:
    """What the row has now in the fields, at any depth, that ``value`` lacks."""
    if value.old is None or not isinstance(value.type, StructType):
        return
    for field, mine in _pairs(value.type, cast("StructType", wanted)):
        if mine is None:
            yield f"{value.old}.{quote(field.name)}"
        elif isinstance(field.dataType, StructType):
            yield from _kept(value.field(mine, field.name), field.dataType)
