"""Changes of columns, by the rules of Iceberg's specification, "Schema Evolution". Driver only."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Final

from spark_jobs.connectors.iceberg.alter.definition import NESTED, Definition, Document, type_text
from spark_jobs.connectors.iceberg.table.table_spec import DEFAULTS_SINCE, iceberg_type, json_value
from spark_jobs.connectors.shared.table.alterations import (
    column_exists,
    find_name,
    no_column,
    not_null,
    not_widened,
    refuse_reserved_prefix,
)
from spark_jobs.contract.alter_table import (
    AddColumn,
    ColumnChange,
    CommentColumn,
    DropColumn,
    MoveColumn,
    RenameColumn,
    SetDefault,
    SetNullable,
    WidenColumn,
)
from spark_jobs.contract.literals import require_literal
from spark_jobs.contract.request import TableName
from spark_jobs.contract.spark_types import parse_type
from spark_jobs.contract.sql_text import name_parts
from spark_jobs.errors import AnalysisError, ErrorCode, NotSupportedError
from spark_jobs.formats.iceberg.reserved import is_reserved

_DECIMAL: Final = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_PROMOTED: Final = (("int", "long"), ("float", "double"))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a type stands: in a field of a struct, in a list or in a map.

    ``holder`` has it as ``part``. ``siblings`` are the fields of the struct, ``index`` is that of
    ``holder`` there; elements, keys and values have none. ``in_key``: within the keys of a map.
    """

    holder: Document
    part: str
    siblings: list[Document] | None = None
    index: int = 0
    in_key: bool = False

    @property
    def type(self) -> Any:
        return self.holder[self.part]

    @property
    def required(self) -> str:
        return "required" if self.siblings is not None else f"{self.part}-required"


def change_columns(name: TableName, table: Definition, change: ColumnChange) -> None:
    """Make one change of the columns of ``table``.

    Raises:
        AnalysisError: COLUMN_NOT_FOUND, COLUMN_EXISTS, TYPE_MISMATCH.
        NotSupportedError: Iceberg, or this connector, does not allow it; names the column.
    """
    path = name_parts(change.column)
    if isinstance(change, AddColumn):
        _add(name, table, path, change)
        return
    place = _find(table, path)
    if place is None:
        if isinstance(change, DropColumn | RenameColumn) and change.if_exists:
            return
        raise no_column(name, path, _known(table, path))
    _refuse_key(name, place, change.column)
    if place.siblings is None and not isinstance(change, WidenColumn | SetNullable):
        raise NotSupportedError(
            f"{name}: {change.column} is what a list or map contains, not a field.",
            "Name a column, or a field of a struct.",
        )
    acts: dict[type, Any] = {
        DropColumn: _drop,
        RenameColumn: _rename,
        WidenColumn: _widen,
        SetNullable: _set_nullable,
        MoveColumn: _move,
        SetDefault: _set_default,
        CommentColumn: _comment,
    }
    acts[type(change)](name, table, place, change)


def _find(table: Definition, path: tuple[str, ...]) -> _Place | None:
    place: _Place | None = None
    for part in path:
        kind = {"type": "struct", "fields": table.fields} if place is None else place.type
        next_place = None if isinstance(kind, str) else _within(kind, part)
        if next_place is None:
            return None
        in_key = next_place.part == "key" or (place is not None and place.in_key)
        place = replace(next_place, in_key=in_key)
    return place


def _within(kind: Document, part: str) -> _Place | None:
    if kind["type"] == "struct":
        index = find_name(part, [each["name"] for each in kind["fields"]])
        siblings = kind["fields"]
        return None if index is None else _Place(siblings[index], "type", siblings, index)
    inner = part.lower()
    return _Place(kind, inner) if inner in NESTED.get(kind["type"], ()) else None


def _fields_of(table: Definition, path: tuple[str, ...]) -> list[Document] | None:
    """The fields of the struct at ``path``, or of the table; None if there is no struct."""
    if not path:
        return table.fields
    place = _find(table, path)
    kind = None if place is None else place.type
    return kind["fields"] if isinstance(kind, dict) and kind["type"] == "struct" else None


def _known(table: Definition, path: tuple[str, ...]) -> list[str]:
    return [each["name"] for each in _fields_of(table, path[:-1]) or ()]


def _add(name: TableName, table: Definition, path: tuple[str, ...], change: AddColumn) -> None:
    siblings = _fields_of(table, path[:-1])
    if siblings is None:
        raise no_column(name, path[:-1], _known(table, path[:-1]))
    _refuse_key(name, _find(table, path[:-1]), change.column)
    index = find_name(path[-1], [each["name"] for each in siblings])
    if index is not None:
        found = siblings[index]
        _require_equal(name, (*path[:-1], found["name"]), found, change)
        return
    _refuse_new_name(name, path[-1])
    default = _default(name, table, change.column, change.default, change.type)
    if not change.nullable and default is None:
        raise NotSupportedError(
            f"{name}: column {change.column} cannot be added as NOT NULL: the rows that are there "
            "have no value for it.",
            "Leave NOT NULL out; in a table of version 3, a default is also possible.",
        )
    ids = table.new_ids()
    field: Document = {"id": next(ids), "name": path[-1], "required": not change.nullable}
    field["type"] = _type(change.type, change.column, ids)
    if change.comment:
        field["doc"] = change.comment
    if default is not None:
        field |= {"initial-default": default, "write-default": default}
    siblings.insert(_position(name, siblings, path, change), field)


def _require_equal(
    name: TableName, path: tuple[str, ...], found: Document, change: AddColumn
) -> None:
    """Check that the column that is there is the one that is asked for, and that it may be."""
    wanted = _shape(_type(change.type, change.column, iter(range(1, 2**31))))
    is_now = type_text(found["type"]) + (" NOT NULL" if found["required"] else "")
    same = _shape(found["type"]) == wanted and found["required"] != change.nullable
    if not (change.if_not_exists and same):
        raise column_exists(name, path, is_now)


def _shape(kind: Any) -> Any:
    """A type without ids and comments."""
    if isinstance(kind, str):
        return kind.replace(" ", "")
    if kind["type"] == "struct":
        return [(f["name"].lower(), f["required"], _shape(f["type"])) for f in kind["fields"]]
    return [
        (part, kind.get(f"{part}-required"), _shape(kind[part])) for part in NESTED[kind["type"]]
    ]


def _type(text: str, column: str, ids: Any) -> Any:
    return iceberg_type(parse_type(text), column, ids)


def _position(
    name: TableName, siblings: list[Document], path: tuple[str, ...], change: AddColumn | MoveColumn
) -> int:
    if change.first:
        return 0
    if change.after is None:
        return len(siblings)
    names = [each["name"] for each in siblings]
    # The whole path of the other column, too, as Spark's builders have it.
    other = name_parts(change.after)[-1]
    index = find_name(other, names)
    if index is None:
        raise no_column(name, (*path[:-1], other), names)
    return index + 1


def _drop(name: TableName, table: Definition, place: _Place, change: DropColumn) -> None:
    assert place.siblings is not None  # noqa: S101 - asked before
    if len(place.siblings) == 1:
        raise NotSupportedError(
            f"{name}: {change.column} is the only column there is; nothing would be left.",
            "Add another one first, or drop what contains it.",
        )
    del place.siblings[place.index]


def _rename(name: TableName, table: Definition, place: _Place, change: RenameColumn) -> None:
    assert place.siblings is not None  # noqa: S101 - asked before
    path = name_parts(change.column)
    _refuse_new_name(name, change.new_name)
    taken = find_name(change.new_name, [each["name"] for each in place.siblings])
    if taken is not None and taken != place.index:
        other = place.siblings[taken]
        raise column_exists(name, (*path[:-1], other["name"]), type_text(other["type"]))
    place.holder["name"] = change.new_name


def _widen(name: TableName, table: Definition, place: _Place, change: WidenColumn) -> None:
    path, before = name_parts(change.column), place.type
    wanted = _type(change.type, change.column, iter(range(1, 2**31)))
    if not isinstance(before, str) or not isinstance(wanted, str):
        raise not_widened(name, path, type_text(before), change.type.upper())
    if _shape(before) == _shape(wanted):
        return
    if not _is_wider(before, wanted):
        raise not_widened(name, path, type_text(before), change.type.upper())
    sources = {part["source-id"] for spec in table.specs.values() for part in spec}
    if place.holder.get("id") in sources | {part["source-id"] for part in table.spec}:
        raise NotSupportedError(
            f"{name}: partitions are or were made of {change.column}, whose type cannot be changed "
            "here.",
            "Alter the table with Iceberg's own engines.",
        )
    place.holder[place.part] = wanted


def _is_wider(before: str, wanted: str) -> bool:
    old, new = _DECIMAL.fullmatch(before), _DECIMAL.fullmatch(wanted)
    if old and new:
        return old[2] == new[2] and int(new[1]) > int(old[1])
    return (before, wanted) in _PROMOTED


def _set_nullable(name: TableName, table: Definition, place: _Place, change: SetNullable) -> None:
    path = name_parts(change.column)
    if not change.nullable and not place.holder.get(place.required):
        raise not_null(name, path)
    place.holder[place.required] = not change.nullable


def _move(name: TableName, table: Definition, place: _Place, change: MoveColumn) -> None:
    assert place.siblings is not None  # noqa: S101 - asked before
    path = name_parts(change.column)
    if change.after and name_parts(change.after)[-1].lower() == path[-1].lower():
        raise AnalysisError(
            ErrorCode.COLUMN_NOT_FOUND,
            f"{change.column} of {name} cannot stand behind itself",
            "Name another column.",
            name=path[-1],
        )
    siblings, moving = place.siblings, place.siblings[place.index]
    others = [each for each in siblings if each is not moving]
    others.insert(_position(name, others, path, change), moving)
    siblings[:] = others


def _comment(name: TableName, table: Definition, place: _Place, change: CommentColumn) -> None:
    if change.comment:
        place.holder["doc"] = change.comment
    else:
        place.holder.pop("doc", None)


def _set_default(name: TableName, table: Definition, place: _Place, change: SetDefault) -> None:
    if change.default is not None and not isinstance(place.type, str):
        raise NotSupportedError(
            f"{name}: {change.column} is {type_text(place.type)}, and only columns of plain types "
            "have defaults.",
            "Leave the default out.",
        )
    kind = type_text(place.type)
    value = _default(name, table, change.column, change.default, kind)
    if value is None:
        place.holder.pop("write-default", None)
    else:
        place.holder["write-default"] = value


def _default(
    name: TableName, table: Definition, column: str, text: str | None, declared: str
) -> Any:
    """The default in JSON, by the specification's "JSON single-value serialization"."""
    if text is None:
        return None
    if table.version < DEFAULTS_SINCE:
        raise NotSupportedError(
            f"{name} has version {table.version} of the format, which has no defaults of columns "
            f"({column} DEFAULT {text}).",
            "Upgrade the table first (SET TBLPROPERTIES ('format-version' = '3')), or leave the "
            "default out.",
        )
    value = require_literal("default", text, declared)
    if value is not None and len(name_parts(column)) > 1:
        raise NotSupportedError(
            f"{name}: {column} is a nested field, whose default statements would not know.",
            "Leave the default out.",
        )
    return None if value is None else json_value(value)


def _refuse_key(name: TableName, place: _Place | None, column: str) -> None:
    """Refuse changes of the keys of maps, by which their entries are told apart."""
    if place is not None and place.in_key:
        raise NotSupportedError(
            f"{name}: {column} is in the keys of a map, which Iceberg does not change.",
            "Add a column with another type.",
        )


def _refuse_new_name(name: TableName, new: str) -> None:
    refuse_reserved_prefix(name, new)
    if is_reserved(new):
        raise NotSupportedError(
            f"{name}: Iceberg's readers need the name {new} for themselves.", "Take another name."
        )
