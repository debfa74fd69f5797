"""Schemas with more columns or wider types, computed with pyiceberg. Driver only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spark_jobs.spi.schema_changes import SchemaChange


def evolved_table(
    table: Any, changes: Sequence[SchemaChange], types: Sequence[Any]
) -> tuple[Any, tuple[Any, ...]]:
    """Pyiceberg's table with the changes, which are not stored, and the updates that store them.

    ``types`` are those of the changes, in Iceberg's JSON form; nested fields get new ids.

    Raises:
        ValueError: pyiceberg refuses a change.
    """
    from pyiceberg.exceptions import ResolveError, ValidationError
    from pyiceberg.table import Table
    from pyiceberg.table.update import update_table_metadata

    update = table.transaction().update_schema()
    try:
        for change, raw in zip(changes, types, strict=True):
            kind = _library_type(raw)
            if change.before is None:
                update.add_column(change.path, kind)
            else:
                update.update_column(change.path, kind)
        updates, _ = update._commit()  # noqa: SLF001 - it would be committed otherwise
    except (ResolveError, ValidationError) as error:
        raise ValueError(str(error)) from error
    metadata = update_table_metadata(table.metadata, updates)
    found = Table(table.name(), metadata, table.metadata_location, table.io, table.catalog)
    return found, tuple(updates)


def _library_type(raw: Any) -> Any:
    from pyiceberg.types import NestedField

    field = {"id": 0, "name": "type", "type": raw, "required": False}
    return NestedField.model_validate(field).field_type
