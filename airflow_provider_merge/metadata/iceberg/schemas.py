"""Schemas and partition specs of an Iceberg table, from its metadata.

Types have the names that SQL has for them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from airflow_provider_merge.metadata.iceberg.partition_values import PartitionField
from airflow_provider_merge.metadata.model import Column, TableSchema
from spark_jobs.formats.iceberg.foreign_types import type_name

_OF_TIME: Final = ("year", "month", "hour")
_UNKNOWN: Final = "unknown"

# A partition spec: its fields in their order, None for one that is always NULL.
Spec = tuple[PartitionField | None, ...]
_NAMES: Final = {
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP(6)",
    "timestamptz": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "timestamp_ns": "TIMESTAMP(9)",
    "timestamptz_ns": "TIMESTAMP(9) WITH LOCAL TIME ZONE",
    "string": "STRING",
    "binary": "BYTES",
}
_DECIMAL: Final = re.compile(r"decimal\((\d+), *(\d+)\)")
_FIXED: Final = re.compile(r"fixed\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class IcebergSchema(TableSchema):
    """A schema with the fields of the newest partition spec, whose names are ``partition_keys``."""

    fields: tuple[PartitionField, ...]

    @property
    def partition_types(self) -> tuple[str, ...]:
        """The types of the partition fields' values."""
        return tuple(field.kind for field in self.fields)


@dataclass(frozen=True, slots=True)
class Schemas:
    """The schemas and specs of pyiceberg's ``TableMetadata``."""

    metadata: Any

    def schema(self, schema_id: int | None) -> IcebergSchema | None:
        """The schema of an id, or the newest one; None: there is none of that id."""
        wanted = self.metadata.current_schema_id if schema_id is None else schema_id
        schema = self.metadata.schema_by_id(wanted)
        if schema is None:
            return None
        fields = self.fields
        return IcebergSchema(
            schema_id=wanted,
            columns=tuple(
                Column(
                    each.name, _sql_type(each.field_type, is_required=each.required), each.field_id
                )
                for each in schema.fields
            ),
            partition_keys=tuple(field.name for field in fields),
            primary_keys=tuple(
                schema.find_column_name(i) or "" for i in schema.identifier_field_ids
            ),
            options=dict(self.metadata.properties),
            fields=fields,
        )

    @property
    def fields(self) -> tuple[PartitionField, ...]:
        """The fields of the newest spec."""
        spec = self.specs()[self.metadata.default_spec_id]
        return tuple(field for field in spec if field is not None)

    def specs(self) -> Mapping[int, Spec]:
        """All partition specs by id."""
        return {
            spec.spec_id: tuple(self._field(each) for each in spec.fields)
            for spec in self.metadata.partition_specs
        }

    def _field(self, field: Any) -> PartitionField | None:
        transform = str(field.transform)
        if transform == "void":
            return None
        source, kind = self._source(field.source_id)
        if transform in _OF_TIME:
            return PartitionField(field.name, transform, source)
        if kind is None:
            return PartitionField(field.name, _UNKNOWN, source)
        return PartitionField(field.name, str(field.transform.result_type(kind)), source)

    def _source(self, source_id: int) -> tuple[str, Any]:
        """Path and type of a column; of one that was dropped, no path and the type that it had."""
        current = self.metadata.schema()
        for schema in (current, *reversed(self.metadata.schemas)):
            name = schema.find_column_name(source_id)
            if name is not None:
                return name if schema is current else "", schema.find_type(source_id)
        return "", None


def _sql_type(kind: Any, *, is_required: bool = False) -> str:
    """The name of one of pyiceberg's types, as in ``DECIMAL(10, 2) NOT NULL``."""
    return f"{_name(kind)} NOT NULL" if is_required else _name(kind)


def _name(kind: Any) -> str:
    if hasattr(kind, "element_type"):
        return f"ARRAY<{_sql_type(kind.element_type, is_required=kind.element_required)}>"
    if hasattr(kind, "key_type"):
        value = _sql_type(kind.value_type, is_required=kind.value_required)
        return f"MAP<{_name(kind.key_type)}, {value}>"
    if hasattr(kind, "fields"):
        parts = (
            f"`{each.name}` {_sql_type(each.field_type, is_required=each.required)}"
            for each in kind.fields
        )
        return f"ROW<{', '.join(parts)}>"
    text = type_name(str(kind))
    if sizes := _DECIMAL.fullmatch(text):
        return f"DECIMAL({sizes[1]}, {sizes[2]})"
    if sizes := _FIXED.fullmatch(text):
        return f"BINARY({sizes[1]})"
    return _NAMES.get(text, text.upper())
