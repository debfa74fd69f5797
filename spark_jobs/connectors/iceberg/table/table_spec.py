"""The schema that a request asks for, and how an existing table differs from it. Driver only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, Final

from spark_jobs.connectors.iceberg.format.schema import IcebergField, parse_fields, spark_type
from spark_jobs.contract.request import TableName
from spark_jobs.contract.spark_types import SparkType, parse_type
from spark_jobs.contract.statements import CreateTableSpec
from spark_jobs.errors import NotSupportedError

_VERSION: Final = "format-version"
_VERSIONS: Final = ("1", "2")
_PRIMITIVE: Final = {
    **dict.fromkeys(("int", "integer"), "int"),
    **dict.fromkeys(("bigint", "long"), "long"),
    **dict.fromkeys(("float", "real"), "float"),
    **dict.fromkeys(("timestamp", "timestamp_ltz"), "timestamptz"),
    **{name: name for name in ("boolean", "double", "date", "string", "binary")},
    "timestamp_ntz": "timestamp",
}


def requested_schema(name: TableName, spec: CreateTableSpec) -> dict[str, Any]:
    """The schema that ``spec`` describes, in Iceberg's JSON form.

    Raises:
        NotSupportedError: Iceberg has no such type, or no primary key; names the column.
        RequestError: REQUEST_INVALID: the text of a type is not a type.
    """
    if spec.primary_key:
        raise NotSupportedError(
            f"{name}: Iceberg tables have no primary key: nothing keeps two rows from having one.",
            "Leave the primary key out; a MERGE finds rows by its ON.",
        )
    if spec.table_options.get(_VERSION, "2") not in _VERSIONS:
        raise NotSupportedError(
            f"{name}: version {spec.table_options[_VERSION]} of the format is only read.",
            f"Leave {_VERSION} out, which means version 2.",
        )
    ids = count(1)
    fields = []
    for column in spec.columns:
        kind = _iceberg_type(parse_type(column.type), column.name, ids)
        field = {"id": next(ids), "name": column.name, "type": kind}
        field |= {"required": not column.nullable}
        fields.append(field | ({"doc": column.comment} if column.comment else {}))
    return {"type": "struct", "schema-id": 0, "fields": fields}


def _iceberg_type(kind: SparkType, column: str, ids: Iterator[int]) -> Any:
    if kind.name == "struct":
        return {
            "type": "struct",
            "fields": [
                {
                    "id": next(ids),
                    "name": each.name,
                    "required": not each.nullable,
                    "type": _iceberg_type(each.type, column, ids),
                }
                for each in kind.fields
            ],
        }
    if kind.name in ("array", "map"):
        made: dict[str, Any] = {"type": "list" if kind.name == "array" else "map"}
        for each in kind.fields:
            made[f"{each.name}-id"] = next(ids)
            made[each.name] = _iceberg_type(each.type, column, ids)
            if each.name != "key":
                made[f"{each.name}-required"] = not each.nullable
        return made
    if kind.name in ("decimal", "dec", "numeric"):
        precision, scale = (*kind.arguments, 0)[:2] if kind.arguments else (10, 0)
        return f"decimal({precision}, {scale})"
    if kind.name not in _PRIMITIVE:
        raise NotSupportedError(
            f"Column {column}: Iceberg has no type {kind.name.upper()}.",
            "Use INT, BIGINT or STRING, which hold its values.",
        )
    return _PRIMITIVE[kind.name]


def differences(
    wanted: dict[str, Any],
    spec: CreateTableSpec,
    found: Sequence[IcebergField],
    partition: Sequence[str],
    properties: dict[str, str],
) -> list[str]:
    """The differences of an existing table, one phrase each; compares only requested options.

    ``partition`` are the fields of its partition spec as ``column`` or ``transform(column)``.
    """
    asked = {each.name: each for each in parse_fields(wanted)}
    is_now = {each.name: each for each in found}
    return [
        *(f"column {name} is missing" for name in asked if name not in is_now),
        *(f"column {name} was not asked for" for name in is_now if name not in asked),
        *(text for name in asked if name in is_now for text in _of(asked[name], is_now[name])),
        *_order(list(asked), list(is_now)),
        *_keys([key.lower() for key in spec.partition_keys], partition),
        *_options(spec, properties),
    ]


def _of(wanted: IcebergField, found: IcebergField) -> Iterator[str]:
    asked, is_now = spark_type(wanted.type), spark_type(found.type)
    if asked != is_now:
        yield f"column {wanted.name} is {is_now}, not {asked}"
    if wanted.required != found.required:
        yield f"column {wanted.name} {'does not admit' if found.required else 'admits'} NULL"


def _order(asked: list[str], is_now: list[str]) -> Iterator[str]:
    if asked != is_now and sorted(asked) == sorted(is_now):
        yield f"the columns are in the order {', '.join(is_now)}"


def _keys(wanted: Sequence[str], found: Sequence[str]) -> Iterator[str]:
    if list(wanted) != [each.lower() for each in found]:
        yield f"partition fields: ({', '.join(found)}), not ({', '.join(wanted)})"


def _options(spec: CreateTableSpec, properties: dict[str, str]) -> Iterator[str]:
    for option, value in spec.table_options.items():
        if option != _VERSION and properties.get(option) != value:
            is_now = repr(properties[option]) if option in properties else "not set"
            yield f"option {option} is {is_now}, not {value!r}"
