"""Schemas and partition specs that nothing reaches any longer. Driver only.

Follows ``cleanExpiredMetadata`` of Iceberg's ``RemoveSnapshots``. Unlike there, a schema stays that
alone says what a column was by which a kept spec partitions, or equality deletes choose rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spark_jobs.connectors.iceberg.table.live_files import entries_of
from spark_jobs.connectors.iceberg.table.manifests import (
    DATA,
    EQUALITY_DELETES,
    ListedManifest,
    ManifestEntry,
)
from spark_jobs.connectors.iceberg.table.metadata_errors import reading_metadata
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.formats.iceberg.transforms import VOID


@dataclass(frozen=True, slots=True)
class UnreachedMetadata:
    """The ids of what goes, ascending."""

    schemas: Sequence[int] = ()
    specs: Sequence[int] = ()

    def __bool__(self) -> bool:
        return bool(self.schemas or self.specs)

    def required(self, metadata: Any) -> Iterator[Any]:
        """Pyiceberg's requirements: what is current stays so."""
        from pyiceberg.table import update

        if self.schemas:
            schema: dict[str, Any] = {"current-schema-id": metadata.current_schema_id}
            yield update.AssertCurrentSchemaId(**schema)
        if self.specs:
            spec: dict[str, Any] = {"default-spec-id": metadata.default_spec_id}
            yield update.AssertDefaultSpecId(**spec)

    def updates(self) -> Iterator[Any]:
        """Pyiceberg's updates."""
        from pyiceberg.table import update

        if self.specs:
            specs: dict[str, Any] = {"spec-ids": list(self.specs)}
            yield update.RemovePartitionSpecsUpdate(**specs)
        if self.schemas:
            schemas: dict[str, Any] = {"schema-ids": list(self.schemas)}
            yield update.RemoveSchemasUpdate(**schemas)

    def is_out_of(self, metadata: Any) -> bool:
        """Whether pyiceberg's ``metadata`` has none of it."""
        known = _ids(metadata)
        return known[0].isdisjoint(self.schemas) and known[1].isdisjoint(self.specs)

    def is_in(self, metadata: Any) -> bool:
        """Whether pyiceberg's ``metadata`` has all of it."""
        known = _ids(metadata)
        return known[0].issuperset(self.schemas) and known[1].issuperset(self.specs)


NOTHING: Final = UnreachedMetadata()


def unreached_metadata(
    table: PinnedTable, staying: Iterable[Any], listed: Collection[ListedManifest]
) -> UnreachedMetadata:
    """What neither the table nor the snapshots ``staying`` need, which list ``listed``.

    Raises:
        CatalogError: METADATA_UNREADABLE.
        InternalError: STORAGE_UNAVAILABLE.
    """
    metadata = table.metadata
    specs = {metadata.default_spec_id, *(each.spec_id for each in listed)}
    schemas = {metadata.current_schema_id, *(each.schema_id for each in staying)}
    needed = {
        field.source_id
        for spec in metadata.partition_specs
        if spec.spec_id in specs
        for field in spec.fields
        if str(field.transform) != VOID
    }
    for entry in _deletes(table, listed):
        if entry.content == EQUALITY_DELETES:
            needed.update(entry.equality_ids)
    # Those that stay anyway first, then the newest.
    tried = sorted(
        metadata.schemas, key=lambda each: (each.schema_id not in schemas, -each.schema_id)
    )
    for schema in tried:
        if not needed.isdisjoint(schema.field_ids):
            needed.difference_update(schema.field_ids)
            schemas.add(schema.schema_id)
    return UnreachedMetadata(
        sorted(each.schema_id for each in metadata.schemas if each.schema_id not in schemas),
        sorted(each.spec_id for each in metadata.partition_specs if each.spec_id not in specs),
    )


def _deletes(table: PinnedTable, listed: Iterable[ListedManifest]) -> list[ManifestEntry]:
    with reading_metadata(table.place):
        return entries_of(table.storage, [each for each in listed if each.content != DATA])


def _ids(metadata: Any) -> tuple[set[int], set[int]]:
    schemas = {each.schema_id for each in metadata.schemas}
    return schemas, {each.spec_id for each in metadata.partition_specs}
