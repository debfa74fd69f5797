"""Schemas and partition specs of an Iceberg table, from its metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from airflow_provider_merge.metadata.iceberg.partition_values import PartitionField
from airflow_provider_merge.metadata.iceberg.types import sql_type
from airflow_provider_merge.metadata.model import Column, TableSchema

_OF_TIME: Final = ("year", "month", "hour")
_UNKNOWN: Final = "unknown"

# A partition spec: its fields in their order, None for one that is always NULL.
Spec = tuple[PartitionField | None, ...]


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
                    each.name, sql_type(each.field_type, is_required=each.required), each.field_id
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
