"""Changes of a table's properties, and its upgrade. Driver only."""

from __future__ import annotations

import json
from typing import Final

from spark_jobs.connectors.iceberg.alter.definition import Definition
from spark_jobs.connectors.iceberg.table.pinned_table import NAME_MAPPING
from spark_jobs.contract.alter_table import CommentTable, PropertyChange, SetProperties
from spark_jobs.contract.request import TableName
from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.iceberg.refused_properties import refuse_property
from spark_jobs.formats.iceberg.reserved import RESERVED_PROPERTIES

_VERSION: Final = "format-version"
_VERSIONS: Final = ("1", "2", "3")


def change_properties(name: TableName, table: Definition, change: PropertyChange) -> None:
    """Make one change of the properties of ``table``.

    Raises:
        NotSupportedError: names the property; it is not one that users set, or has a value with
            which this project could not change the table any more.
    """
    if isinstance(change, CommentTable):
        if change.comment:
            table.properties["comment"] = change.comment
        else:
            table.properties.pop("comment", None)
        return
    if isinstance(change, SetProperties):
        for option, value in change.properties.items():
            if option == _VERSION:
                _upgrade(name, table, value)
            else:
                _set(name, table, option, value)
        return
    for option in change.names:
        _refuse_reserved(name, option)
        table.properties.pop(option, None)


def _set(name: TableName, table: Definition, option: str, value: str) -> None:
    _refuse_reserved(name, option)
    refuse_property(name, option, value)
    if option == NAME_MAPPING and not _is_mapping(value):
        raise NotSupportedError(
            f"{name}: property {option} is not the JSON of a name mapping.",
            "Correct it by the specification of Iceberg, or leave it out.",
        )
    table.properties[option] = value


def _is_mapping(value: str) -> bool:
    from pyiceberg.table.name_mapping import parse_mapping_from_json

    try:
        parse_mapping_from_json(value)
    except ValueError:
        return False
    return isinstance(json.loads(value), list)


def _refuse_reserved(name: TableName, option: str) -> None:
    if option in (*RESERVED_PROPERTIES, _VERSION):
        raise NotSupportedError(
            f"{name}: {option} is not a property that can be set or removed.",
            RESERVED_PROPERTIES.get(option, "A table is only upgraded, by SET TBLPROPERTIES."),
        )


def _upgrade(name: TableName, table: Definition, value: str) -> None:
    if value not in _VERSIONS:
        raise NotSupportedError(
            f"{name}: version {value} of the format is not supported.",
            f"Use one of {', '.join(_VERSIONS)}.",
        )
    if int(value) < table.version:
        raise NotSupportedError(
            f"{name} has version {table.version} of the format, and no table goes back to {value}.",
            "Create a table of that version, and insert the rows there.",
        )
    table.version = int(value)
