"""What checks before a job ask of a Paimon table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_provider_merge.metadata.model import TableSchema
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.request import TableName
from spark_jobs.formats.paimon.compaction import (
    CompactionThresholds,
    refuse_deletes,
    refuse_manifests,
    refuse_uncompactable,
    refuse_unsortable,
)
from spark_jobs.formats.paimon.refused_options import Use, refuse_options


@dataclass(frozen=True, slots=True)
class PaimonDefinition:
    """The newest schema of the table ``name``; its options decide what is refused."""

    name: TableName
    schema: TableSchema

    @property
    def columns(self) -> Mapping[str, str]:
        """The columns in their order, name → type."""
        return self.schema.column_types

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The partition columns."""
        return self.schema.partition_keys

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The partition columns, the primary key and the bucket key."""
        names = self.schema.options.get("bucket-key", "").split(",")
        bucket_key = filter(None, (name.strip() for name in names))
        return (*self.schema.partition_keys, *self.schema.primary_keys, *bucket_key)

    def refuse_source(self) -> None:
        """Refuse a table by its options."""
        self._refuse_options("read")

    def refuse_target(self) -> None:
        """Refuse a table by its options."""
        self._refuse_options("write")

    def refuse_uncompactable(self, spec: CompactSpec) -> None:
        """Refuse a table with data evolution, with a wrong threshold, or in an order of its own.

        Raises:
            NotSupportedError: gives the reason.
        """
        options = self.schema.options
        refuse_uncompactable(self.name, options)
        refuse_unsortable(self.name, spec, self.schema.primary_keys, options)
        refuse_manifests(self.name, spec)
        refuse_deletes(self.name, spec)
        CompactionThresholds.of(spec, options, has_primary_key=bool(self.schema.primary_keys))

    def _refuse_options(self, use: Use) -> None:
        refuse_options(self.name, self.schema.primary_keys, self.schema.options, use)
