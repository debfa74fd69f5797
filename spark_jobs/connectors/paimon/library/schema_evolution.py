"""Schemas with more columns or wider types, computed and written with pypaimon. Driver only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spark_jobs.connectors.paimon.format.types import to_paimon
from spark_jobs.spi.schema_changes import SchemaChange


def library_changes(changes: Sequence[SchemaChange]) -> list[Any]:
    """The changes as pypaimon and the server of a REST catalog take them.

    Raises:
        NotSupportedError: Paimon has no such type; names the column.
    """
    from pypaimon.schema.data_types import DataTypeParser
    from pypaimon.schema.schema_change import SchemaChange as Change

    found = []
    for each in changes:
        document = to_paimon(each.type, each.place, nullable=True)
        kind, path = DataTypeParser.parse_data_type(document), list(each.path)
        if each.before is None:
            found.append(Change.add_column(path, kind))
        else:
            found.append(Change.update_column_type(path, kind, keep_nullability=True))
    return found


def evolved_table(table: Any, changes: Sequence[SchemaChange]) -> Any:
    """A table object like ``table`` with the next schema, which is not stored.

    Raises:
        NotSupportedError: Paimon has no such type.
        ValueError: pypaimon refuses a change.
    """
    from pypaimon.table.file_store_table import FileStoreTable

    schemas, now = table.schema_manager, table.table_schema
    schema = schemas._generate_table_schema(now, library_changes(changes))  # noqa: SLF001
    found = FileStoreTable(
        table.file_io, table.identifier, table.table_path, schema, table.catalog_environment
    )
    found.schema_manager = schemas
    return found


def schema_text(table: Any) -> str:
    """The text of the file of the table's schema."""
    from pypaimon.common.json_util import JSON

    return str(JSON.to_json(table.table_schema, indent=2))
