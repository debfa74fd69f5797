"""Changes of partition fields, sort order and identifier fields. Driver only.

Follows ``BaseUpdatePartitionSpec`` of Iceberg's Java: which names and ids new fields get, and what
stays of fields that are gone in tables of version 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from spark_jobs.connectors.iceberg.alter.definition import Definition, Document, type_text
from spark_jobs.connectors.shared.table.alterations import find_name, no_column
from spark_jobs.contract.alter_table import (
    AddPartitionField,
    DropIdentifierFields,
    DropPartitionField,
    IdentifierChange,
    PartitionFieldChange,
    ReplacePartitionField,
    SetWriteOrder,
)
from spark_jobs.contract.partition_keys import IDENTITY, PartitionKey, parsed_key
from spark_jobs.contract.request import TableName
from spark_jobs.contract.sql_text import name_parts
from spark_jobs.errors import AnalysisError, ErrorCode, NotSupportedError
from spark_jobs.formats.iceberg.transforms import VOID, is_known, is_sortable

DISTRIBUTION: Final = "write.distribution-mode"
# Behind the name of the column, with the number of the transform, as Java names added fields.
_SUFFIXES: Final = {IDENTITY: "", "truncate": "_trunc"}
_TIMES: Final = ("year", "month", "day", "hour")


def change_partition(name: TableName, table: Definition, change: PartitionFieldChange) -> None:
    """Make one change of the partition fields of ``table``.

    Raises:
        AnalysisError: COLUMN_NOT_FOUND, COLUMN_EXISTS: of a field, too.
        NotSupportedError: the column's type has no such transform.
    """
    if isinstance(change, AddPartitionField):
        if not (change.if_not_exists and _is_there(name, table, change.field, change.name)):
            _add(name, table, change.field, change.name)
        return
    index = _index(name, table, change.field)
    if index is None:
        if isinstance(change, DropPartitionField) and change.if_exists:
            return
        if isinstance(change, ReplacePartitionField) and _is_there(
            name, table, change.by, change.name
        ):
            return
        known = [each["name"] for each in _live(table)]
        raise AnalysisError(
            ErrorCode.COLUMN_NOT_FOUND,
            f"{name} has no partition field {change.field}",
            f"There are: {', '.join(known)}." if known else "It has none.",
            name=change.field,
        )
    _remove(table, index)
    if isinstance(change, ReplacePartitionField):
        _add(name, table, change.by, change.name)


def _live(table: Definition) -> Iterator[Document]:
    return (each for each in table.spec if each["transform"] != VOID)


def _transform(key: PartitionKey) -> str:
    return key.transform if key.number is None else f"{key.transform}[{key.number}]"


def _source(name: TableName, table: Definition, key: PartitionKey, use: str) -> Document:
    """The column of a key; ``use`` says what for."""
    index = find_name(key.column, [each["name"] for each in table.fields])
    if index is not None:
        return table.fields[index]
    if "." in key.column:
        raise NotSupportedError(
            f"{name}: {key} is of a nested field, which is not supported as {use}.",
            "Use a column of its own; in backticks, if its name has a dot.",
        )
    raise no_column(name, (key.column,), [each["name"] for each in table.fields])


def _known_source(name: TableName, table: Definition, key: PartitionKey) -> Document:
    source = _source(name, table, key, "a partition field")
    kind = source["type"] if isinstance(source["type"], str) else source["type"]["type"]
    if not is_known(kind, _transform(key)):
        raise NotSupportedError(
            f"{name}: {key}: column {source['name']} is {type_text(source['type'])}, of which "
            "there is no such partition field here.",
            "Use another transform, or another column.",
        )
    return source


def _is_there(name: TableName, table: Definition, field: str, called: str | None) -> bool:
    key = parsed_key(field)
    source = _known_source(name, table, key)
    same = _same(table, source, _transform(key))
    return same is not None and called in (None, same["name"])


def _same(table: Definition, source: Document, transform: str) -> Document | None:
    for field in _live(table):
        if (field["source-id"], field["transform"]) == (source["id"], transform):
            return field
    return None


def _index(name: TableName, table: Definition, text: str) -> int | None:
    """The place of a field of the current spec, by its name or by its transform."""
    live = {i: each for i, each in enumerate(table.spec) if each["transform"] != VOID}
    key = parsed_key(text)
    if key.transform == IDENTITY:
        position = find_name(key.column, [each["name"] for each in live.values()])
        if position is not None:
            return list(live)[position]
    index = find_name(key.column, [each["name"] for each in table.fields])
    if index is None:
        return None
    wanted = (table.fields[index]["id"], _transform(key))
    places = (i for i, f in live.items() if (f["source-id"], f["transform"]) == wanted)
    return next(places, None)


def _remove(table: Definition, index: int) -> None:
    """Of version 1, a field of nothing stays, because files know fields by their places."""
    if table.version == 1:
        table.spec[index] = {**table.spec[index], "transform": VOID}
    else:
        del table.spec[index]


def _add(name: TableName, table: Definition, text: str, given: str | None) -> None:
    key = parsed_key(text)
    source = _known_source(name, table, key)
    transform = _transform(key)
    if (same := _same(table, source, transform)) is not None:
        raise _taken(name, text, same["name"])
    _refuse_second_time(name, table, source, text, transform)
    field = _recycled(table, source["id"], transform, given)
    if field is None:
        table.last_partition_id += 1
        field = {
            "source-id": source["id"],
            "field-id": table.last_partition_id,
            "transform": transform,
            "name": given or _default_name(source["name"], key),
        }
    for index, existing in enumerate(table.spec):
        if existing["name"].lower() != field["name"].lower():
            continue
        if existing["transform"] != VOID:
            raise _taken(name, text, existing["name"])
        table.spec[index] = {**existing, "name": f"{existing['name']}_{existing['field-id']}"}
    table.spec.append(field)


def _recycled(
    table: Definition, source_id: int, transform: str, given: str | None
) -> Document | None:
    """The field that an older spec has of it; it keeps its id, so that files of both agree."""
    if table.version == 1:
        return None
    for spec in table.specs.values():
        for old_field in spec:
            same = (old_field["source-id"], old_field["transform"]) == (source_id, transform)
            if same and given in (None, old_field["name"]):
                return dict(old_field)
    return None


def _default_name(column: str, key: PartitionKey) -> str:
    number = "" if key.number is None else f"_{key.number}"
    return column + _SUFFIXES.get(key.transform, f"_{key.transform}") + number


def _refuse_second_time(
    name: TableName, table: Definition, source: Document, text: str, transform: str
) -> None:
    """Refuse a second unit of time: of a day, the month is known."""
    if transform not in _TIMES:
        return
    for field in _live(table):
        if field["source-id"] == source["id"] and field["transform"] in _TIMES:
            raise NotSupportedError(
                f"{name}: {text}: there is {field['name']} already, a unit of time of the same "
                "column.",
                "Replace that field: REPLACE PARTITION FIELD.",
            )


def _taken(name: TableName, text: str, field: str) -> AnalysisError:
    return AnalysisError(
        ErrorCode.COLUMN_EXISTS,
        f"{name}: {text}: there is a partition field {field} already",
        "Give another name (AS), or leave it out; with if_not_exists, an equal field is left "
        "alone.",
        name=field,
    )


def change_order(name: TableName, table: Definition, change: SetWriteOrder) -> None:
    """Set the sort order of ``table``, and how rows are distributed.

    Raises:
        AnalysisError: COLUMN_NOT_FOUND.
        NotSupportedError: rows are not sorted by such a transform here.
    """
    order = []
    for part in change.fields():
        source = _source(name, table, part.key, "a part of an order")
        kind = source["type"] if isinstance(source["type"], str) else source["type"]["type"]
        transform = _transform(part.key)
        if not is_sortable(kind, transform):
            raise NotSupportedError(
                f"{name}: {part.key}: column {source['name']} is {type_text(source['type'])}, by "
                "which rows are not sorted here.",
                "Order by another column, or without the transform.",
            )
        order.append(
            {
                "source-id": source["id"],
                "transform": transform,
                "direction": "desc" if part.descending else "asc",
                "null-order": "nulls-first" if part.nulls_first else "nulls-last",
            }
        )
    table.order = order
    if change.distribution is not None:
        table.properties[DISTRIBUTION] = change.distribution


def change_identifiers(name: TableName, table: Definition, change: IdentifierChange) -> None:
    """Set or drop identifier fields.

    Raises:
        AnalysisError: COLUMN_NOT_FOUND.
        NotSupportedError: a column identifies no row.
    """
    by_path = {
        tuple(part.lower() for part in path): (each, path) for each, path in table.paths().values()
    }
    ids = []
    for column in change.columns:
        entry = by_path.get(tuple(part.lower() for part in name_parts(column)))
        if entry is None:
            raise no_column(name, name_parts(column), [each["name"] for each in table.fields])
        ids.append(int(entry[0]["id"]))
    if not isinstance(change, DropIdentifierFields):
        table.identifiers = sorted(set(ids))
        require_identifiers(name, table)
        return
    for column, number in zip(change.columns, ids, strict=True):
        if number not in table.identifiers and not change.if_exists:
            raise AnalysisError(
                ErrorCode.COLUMN_NOT_FOUND,
                f"{column} of {name} is no identifier field",
                "Leave it out.",
                name=column,
            )
    table.identifiers = [each for each in table.identifiers if each not in ids]


def require_identifiers(name: TableName, table: Definition) -> None:
    """Check that each identifier field can tell rows apart, by the specification's rules.

    Raises:
        NotSupportedError: one is gone, admits NULL, or is of a type that does not.
    """
    paths = table.paths()
    for number in table.identifiers:
        if number not in paths:
            raise NotSupportedError(
                f"{name}: a column is an identifier field, and cannot be dropped.",
                "Drop the identifier field first (DROP IDENTIFIER FIELDS).",
            )
        field, path = paths[number]
        problem = _identifier_problem(table, field, path)
        if problem:
            raise NotSupportedError(
                f"{name}: column {'.'.join(path)} {problem}, which an identifier field must not.",
                "Leave it out of the identifier fields.",
            )


def _identifier_problem(table: Definition, field: Document, path: tuple[str, ...]) -> str:
    if not isinstance(field["type"], str) or field["type"] in ("float", "double"):
        return f"is {type_text(field['type'])}"
    if not field["required"]:
        return "admits NULL"
    fields: Any = table.fields
    for part in path[:-1]:
        above: Mapping[str, Any] | None = next((f for f in fields if f["name"] == part), None)
        kind = None if above is None else above["type"]
        if above is None or not isinstance(kind, dict) or kind["type"] != "struct":
            return "is in a list or map"
        if not above["required"]:
            return f"is in {part}, which admits NULL"
        fields = kind["fields"]
    return ""
