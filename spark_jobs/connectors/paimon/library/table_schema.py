"""A table's schemas, read with pypaimon. Driver only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from spark_jobs.connectors.paimon.format.field_ids import with_field_id
from spark_jobs.connectors.paimon.library.metadata_checks import (
    require_sound_schema,
)
from spark_jobs.connectors.paimon.library.table_paths import table_path


@dataclass(frozen=True, slots=True)
class PaimonColumn:
    """A column as in the schema file; ``type`` is in Paimon's JSON form."""

    name: str
    type: Any
    comment: str | None = None
    default: str | None = None


@dataclass(frozen=True, slots=True)
class PaimonSchema:
    """A table's schema, without field ids."""

    columns: tuple[PaimonColumn, ...]
    partition_keys: tuple[str, ...]
    primary_keys: tuple[str, ...]
    options: Mapping[str, str]
    comment: str | None = None

    @property
    def bucket_key(self) -> tuple[str, ...]:
        """The columns of option ``bucket-key``."""
        names = self.options.get("bucket-key", "").split(",")
        return tuple(name.strip() for name in names if name.strip())


def schema_of(table: Any) -> PaimonSchema:
    """The schema that the table object was loaded with.

    Raises:
        ValueError: it has invalid values.
    """
    schema = table.table_schema
    require_sound_schema(schema)
    return PaimonSchema(
        columns=tuple(
            PaimonColumn(f.name, f.type.to_dict(), f.description, f.default_value)
            for f in schema.fields
        ),
        partition_keys=tuple(schema.partition_keys),
        primary_keys=tuple(schema.primary_keys),
        options=dict(schema.options),
        comment=schema.comment,
    )


def schema_id(table: Any) -> int:
    """The id of the schema that the table object was loaded with."""
    return int(table.table_schema.id)


def has_same_columns(table: Any, schema_id: int) -> bool:
    """Whether a schema of the table has the same columns as the current one."""
    schema = table.schema_manager.get_schema(schema_id)
    if schema is None:
        raise FileNotFoundError(f"schema {schema_id} of {table_path(table)} does not exist")
    now = table.table_schema.fields
    return [_physical(field) for field in schema.fields] == [_physical(field) for field in now]


def _physical(field: Any) -> tuple[Any, ...]:
    """The attributes of a column that decide how files store it."""
    return field.id, field.name, field.type


def arrow_schema(table: Any) -> pa.Schema:
    """The Arrow schema of the table's data files, with Paimon's field ids and without comments."""
    from pypaimon.schema.data_types import PyarrowFieldParser

    fields = table.table_schema.fields
    schema = PyarrowFieldParser.from_paimon_schema(fields)
    return pa.schema(
        [
            with_field_id(arrow.remove_metadata(), field.id, field.type.to_dict())
            for arrow, field in zip(schema, fields, strict=True)
        ]
    )


def all_options(table: Any) -> list[Mapping[str, str]]:
    """The options of every schema that the table has had."""
    return [schema.options for schema in table.schema_manager.list_all()]
