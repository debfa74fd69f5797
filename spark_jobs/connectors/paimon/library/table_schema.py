"""A table's directories and schemas, read with pypaimon. Driver only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from spark_jobs.connectors.paimon.format.schema_history import SchemaField
from spark_jobs.connectors.paimon.format.types import with_field_id
from spark_jobs.connectors.paimon.library.metadata_checks import (
    place_of_metadata,
    reading_metadata,
    require_sound_schema,
)
from spark_jobs.connectors.paimon.library.stored_snapshots import text_of
from spark_jobs.formats.paimon.metadata_files import entry_name


def table_path(table: Any) -> str:
    """The table's directory."""
    return str(table.table_path).rstrip("/")


def branch_path(table: Any) -> str:
    """The directory with the snapshots, schemas and consumers of the table's branch."""
    from pypaimon.branch.branch_manager import BranchManager

    path: str = BranchManager.branch_path(table_path(table), table.current_branch())
    return path


def bucket_directory(table: Any, partition: Sequence[Any], bucket: int) -> str:
    """The directory of a bucket's data files, spelled as by Paimon's Java writers."""
    from pypaimon.utils.file_store_path_factory import canonical_data_file_path

    path: str = canonical_data_file_path(table, tuple(partition), bucket, "x")
    return path.rpartition("/")[0]


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
        """The columns of option ``bucket-key``; by default, the key without partition keys."""
        names = self.options.get("bucket-key", "").split(",")
        given = tuple(name.strip() for name in names if name.strip())
        return given or tuple(n for n in self.primary_keys if n not in self.partition_keys)

    @property
    def marks_rows(self) -> bool:
        """Whether deletion vectors mark deleted rows (option ``deletion-vectors.enabled``)."""
        return self._is_on("deletion-vectors.enabled")

    @property
    def tracks_rows(self) -> bool:
        """Whether each row has an id, which it keeps (option ``row-tracking.enabled``)."""
        return self._is_on("row-tracking.enabled")

    @property
    def evolves_columns(self) -> bool:
        """Whether files may hold some columns of other files' rows (``data-evolution.enabled``)."""
        return self._is_on("data-evolution.enabled")

    def _is_on(self, option: str) -> bool:
        return self.options.get(option, "false").strip().lower() == "true"


class CheckedSchemas:
    """pypaimon's manager of a table's schemas, for which a missing schema is an error."""

    def __init__(self, real: Any, path: str) -> None:
        self._real = real
        self._path = path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def get_schema(self, schema_id: int) -> Any:
        """The schema.

        Raises:
            FileNotFoundError: there is none with this id.
        """
        schema = self._real.get_schema(schema_id)
        if schema is None:
            raise FileNotFoundError(f"schema {schema_id} of {self._path} does not exist")
        return schema


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


def with_schema(table: Any, schema_id: int) -> Any:
    """The table object with one of its stored schemas.

    Raises:
        FileNotFoundError: there is none with this id.
    """
    from pypaimon.table.file_store_table import FileStoreTable

    if table.table_schema.id == schema_id:
        return table
    schemas = table.schema_manager
    former_table = FileStoreTable(
        table.file_io,
        table.identifier,
        table.table_path,
        schemas.get_schema(schema_id),
        table.catalog_environment,
    )
    former_table.schema_manager = schemas
    return former_table


def schema_id(table: Any) -> int:
    """The id of the schema that the table object was loaded with."""
    return int(table.table_schema.id)


def identity(table: Any, schema_id: int) -> Any:
    """What tells the table from one that was made later under its name.

    It is the id that a catalog's server gave it or, without a server, when the schema of this id
    was stored (milliseconds since 1970).

    Raises:
        FileNotFoundError: there is none with this id.
    """
    current = table.table_schema
    stored = current if current.id == schema_id else table.schema_manager.get_schema(schema_id)
    return table.catalog_environment.uuid or stored.time_millis


def schema_path(table: Any, schema_id: int) -> str:
    """The file of a schema, as the table's own ``file_io`` knows it."""
    return f"{table.schema_manager.schema_path}/{entry_name('schema', schema_id)}"


def is_stored(table: Any) -> bool:
    """Whether the file of the table's schema is there, and not one of a table made later.

    Raises:
        OSError: it cannot be read.
    """
    text = text_of(table.file_io, schema_path(table, table.table_schema.id))
    if text is None:
        return False
    stored = json.loads(text)
    return bool(stored.get("timeMillis") == table.table_schema.time_millis)


def field_ids(table: Any) -> tuple[int, ...]:
    """The ids of the table's columns."""
    return tuple(field.id for field in table.table_schema.fields)


def column_names_of(table: Any, schema_id: int) -> list[str]:
    """The names of the columns of a schema.

    Raises:
        FileNotFoundError: there is no such schema.
    """
    return [field.name for field in table.schema_manager.get_schema(schema_id).fields]


def columns_of(table: Any, schema_id: int) -> list[Any] | None:
    """Pypaimon's fields of an earlier schema; None if files have the same columns today.

    Raises:
        FileNotFoundError: there is no such schema.
    """
    schema = table.schema_manager.get_schema(schema_id)
    now = table.table_schema.fields
    if [_physical(field) for field in schema.fields] == [_physical(field) for field in now]:
        return None
    require_sound_schema(schema)
    return list(schema.fields)


def _physical(field: Any) -> tuple[Any, ...]:
    """The attributes of a column that decide how files store it."""
    return field.id, field.name, field.type


def arrow_schema(table: Any) -> pa.Schema:
    """The Arrow schema of the table's data files, with Paimon's field ids and without comments."""
    return pa.schema([field.arrow for field in schema_fields(table.table_schema.fields)])


def schema_fields(fields: Sequence[Any]) -> list[SchemaField]:
    """Pypaimon's fields with their types in JSON form and in Arrow, without comments."""
    from pypaimon.schema.data_types import PyarrowFieldParser

    schema = PyarrowFieldParser.from_paimon_schema(fields)
    all_fields = []
    for arrow, field in zip(schema, fields, strict=True):
        kind = field.type.to_dict()
        all_fields.append(
            SchemaField(field.id, kind, with_field_id(arrow.remove_metadata(), field.id, kind))
        )
    return all_fields


def all_options(table: Any) -> list[Mapping[str, str]]:
    """The options of every schema that the table has had.

    Raises:
        CatalogError, InternalError: as ``reading_metadata``; the table may have been dropped.
    """
    with reading_metadata(place_of_metadata(table)):
        return [schema.options for schema in table.schema_manager.list_all()]
