"""Schemas that pypaimon stores: of new tables, with a statement's columns, or altered.

Driver only.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from spark_jobs.connectors.paimon.format.types import to_paimon
from spark_jobs.connectors.paimon.library.table_schema import PaimonColumn, PaimonSchema
from spark_jobs.contract.request import TableName
from spark_jobs.errors import NotSupportedError, RequestError
from spark_jobs.formats.paimon.definitions import OF_SERVER
from spark_jobs.spi.alterations import SchemaChange


def create_table(catalog: Any, name: TableName, schema: PaimonSchema) -> bool:
    """Create the database and the table if they do not exist; True: pypaimon does not tell.

    Raises:
        ValueError: pypaimon refuses the schema or an option.
    """
    from pypaimon import Schema
    from pypaimon.common.identifier import Identifier

    catalog.create_database(name.database, True)
    fields = _new_fields(schema.columns)
    new = Schema(
        fields,
        list(schema.partition_keys),
        list(schema.primary_keys),
        dict(schema.options),
        schema.comment,
    )
    catalog.create_table(Identifier.create(name.database, name.table), new, True)
    return True


def _new_fields(columns: Sequence[PaimonColumn]) -> list[Any]:
    """Fields with ids, numbered as in pypaimon's ``Schema.from_pyarrow_schema``."""
    from pypaimon.schema.data_types import (
        AtomicInteger,
        DataField,
        DataTypeParser,
        reassign_field_id,
    )

    counter = AtomicInteger(-1)
    fields = []
    for column in columns:
        field_id = counter.increment_and_get()
        kind = reassign_field_id(DataTypeParser.parse_data_type(column.type), counter)
        fields.append(DataField(field_id, column.name, kind, column.comment, column.default))
    return fields


def library_changes(changes: Sequence[SchemaChange]) -> list[Any]:
    """The changes as pypaimon and the server of a REST catalog take them.

    Raises:
        NotSupportedError: Paimon has no such type; names the column.
    """
    from pypaimon.schema.data_types import DataTypeParser
    from pypaimon.schema.schema_change import SchemaChange as Change

    converted = []
    for change in changes:
        document = _paimon_type(change)
        kind, path = DataTypeParser.parse_data_type(document), list(change.path)
        if change.before is None:
            converted.append(Change.add_column(path, kind))
        else:
            converted.append(Change.update_column_type(path, kind, keep_nullability=True))
    return converted


def evolved_table(table: Any, changes: Sequence[SchemaChange]) -> Any:
    """A table object like ``table`` with the next schema, which is not stored.

    Raises:
        NotSupportedError: Paimon has no such type.
        ValueError: pypaimon refuses a change.
    """
    from pypaimon.table.file_store_table import FileStoreTable

    schemas, now = table.schema_manager, table.table_schema
    schema = schemas._generate_table_schema(now, library_changes(changes))  # noqa: SLF001
    evolved = FileStoreTable(
        table.file_io, table.identifier, table.table_path, schema, table.catalog_environment
    )
    evolved.schema_manager = schemas
    return evolved


def schema_text(table: Any) -> str:
    """The text of the file of the table's schema."""
    from pypaimon.common.json_util import JSON

    document = json.loads(JSON.to_json(table.table_schema))
    # Java would read the comment null as the text "null".
    given = {name: value for name, value in document.items() if value is not None}
    return json.dumps(given, indent=2, ensure_ascii=False)


def _paimon_type(change: SchemaChange) -> Any:
    try:
        return to_paimon(change.type, change.place, nullable=True)
    except RequestError as error:
        raise NotSupportedError(
            f"schema_evolution: {change.place} has the type {change.type.upper()} in the source, "
            "which a Paimon table cannot hold.",
            "Cast the source's column to another type.",
        ) from error


def altered_schema(table: Any, schema: Any, changes: Sequence[Any]) -> Any:
    """Pypaimon's ``schema`` of ``table`` with its ``changes``, under the same id.

    Raises:
        ValueError: pypaimon refuses a change.
    """
    from dataclasses import replace

    from pypaimon.catalog import catalog_exception as kinds
    from pypaimon.schema.schema_change import UpdateColumnDefaultValue

    refusals = (kinds.ColumnNotExistException, kinds.ColumnAlreadyExistException)
    # Pypaimon does not make these itself.
    others = [each for each in changes if not isinstance(each, UpdateColumnDefaultValue)]
    try:
        made = table.schema_manager._generate_table_schema(schema, others)  # noqa: SLF001
    except refusals as error:
        raise ValueError(str(error)) from error
    for change in changes:
        if isinstance(change, UpdateColumnDefaultValue):
            made = replace(made, fields=_with_default(made.fields, change))
    return replace(made, id=schema.id)


def with_schema(table: Any, schema: Any) -> Any:
    """A table object like ``table`` with another schema, which is not stored."""
    from pypaimon.table.file_store_table import FileStoreTable

    changed_table = FileStoreTable(
        table.file_io, table.identifier, table.table_path, schema, table.catalog_environment
    )
    changed_table.schema_manager = table.schema_manager
    return changed_table


def next_schema(schema: Any, number: int) -> Any:
    """Pypaimon's ``schema`` under the id ``number``, as made now."""
    from dataclasses import replace
    from time import time

    return replace(schema, id=number, time_millis=int(time() * 1000))


def text_of_schema(schema: Any) -> str:
    """What tells a schema from another one: not its id, nor when and by whom it was stored."""
    from pypaimon.common.json_util import JSON

    document = json.loads(JSON.to_json(schema))
    named = {k: v for k, v in document.items() if k not in ("id", "timeMillis", "version")}
    given = {name: value for name, value in named.items() if value is not None}
    given["options"] = {k: v for k, v in schema.options.items() if k not in OF_SERVER}
    return json.dumps(given, sort_keys=True)


def with_type(column: Sequence[str], kind: Any, comment: str | None, move: Any) -> Any:
    """Pypaimon's change that adds a column of the type ``kind`` (JSON)."""
    from pypaimon.schema.data_types import DataTypeParser
    from pypaimon.schema.schema_change import SchemaChange

    parsed = DataTypeParser.parse_data_type(kind)
    return SchemaChange.add_column(list(column), parsed, comment, move)


def widened(column: Sequence[str], kind: Any) -> Any:
    """Pypaimon's change that gives a column another type (JSON)."""
    from pypaimon.schema.data_types import DataTypeParser
    from pypaimon.schema.schema_change import SchemaChange

    parsed = DataTypeParser.parse_data_type(kind)
    return SchemaChange.update_column_type(list(column), parsed, keep_nullability=True)


def placed(name: str, after: str | None) -> Any:
    """Pypaimon's place of a column: first, or after another one."""
    from pypaimon.schema.schema_change import Move

    return Move.first(name) if after is None else Move.after(name, after)


def _with_default(fields: Sequence[Any], change: Any) -> list[Any]:
    from pypaimon.schema.data_types import DataField

    (name,) = change.field_names
    return [
        DataField(f.id, f.name, f.type, f.description, change.new_default_value)
        if f.name == name
        else f
        for f in fields
    ]
