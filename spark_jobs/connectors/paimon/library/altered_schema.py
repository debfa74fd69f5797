"""A table's schema as ALTER TABLE makes it, computed with pypaimon. Driver only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from spark_jobs.formats.paimon.fixed_options import OF_SERVER


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
