"""What checks before a job ask of an Iceberg table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_merge.metadata.iceberg.schemas import IcebergSchema
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.request import TableName
from spark_jobs.formats.iceberg.compaction import CompactionThresholds, refuse_uncompactable
from spark_jobs.formats.iceberg.refused_properties import refuse_target


@dataclass(frozen=True, slots=True)
class IcebergDefinition:
    """The newest schema of the table ``name``, and pyiceberg's ``TableMetadata`` of it."""

    name: TableName
    schema: IcebergSchema
    metadata: Any

    @property
    def columns(self) -> Mapping[str, str]:
        """The columns in their order, name → type."""
        return self.schema.column_types

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The partition fields."""
        return self.schema.partition_keys

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns of the partition fields, and the identifier's."""
        sources = (field.source for field in self.schema.fields)
        return (*filter(None, sources), *self.schema.primary_keys)

    def refuse_source(self) -> None:
        """Nothing: what jobs do not read, pyiceberg does not load, or only columns tell."""

    def refuse_target(self) -> None:
        """Refuse a table by its version and its properties."""
        refuse_target(self.name, self.metadata.format_version, self.metadata.properties)

    def refuse_uncompactable(self, spec: CompactSpec) -> None:
        """Refuse a table that is not compacted as ``spec`` says, by its metadata.

        Raises:
            NotSupportedError: gives the reason.
        """
        if spec.manifests != "only":
            refuse_uncompactable(self.name, self.metadata)
            CompactionThresholds.of(spec, self.metadata.properties)
