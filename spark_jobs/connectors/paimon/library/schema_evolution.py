"""Schemas with more columns or wider types, computed and written with pypaimon. Driver only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from spark_jobs.connectors.paimon.format.types import to_paimon
from spark_jobs.errors import NotSupportedError, RequestError
from spark_jobs.spi.schema_changes import SchemaChange


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
