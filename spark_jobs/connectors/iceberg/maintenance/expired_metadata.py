"""A table's metadata without what expires and what nothing reaches. Driver only.

Follows ``cleanExpiredMetadata`` of Iceberg's ``RemoveSnapshots``. Unlike there, a schema stays that
alone says what a column was by which a kept spec partitions, or equality deletes choose rows.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spark_jobs.connectors.iceberg.maintenance.references import pointer, unchanged
from spark_jobs.connectors.iceberg.table.live_files import entries_of
from spark_jobs.connectors.iceberg.table.manifests import (
    DATA,
    EQUALITY_DELETES,
    ListedManifest,
    ManifestEntry,
)
from spark_jobs.connectors.iceberg.table.metadata_errors import reading_metadata
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.formats.iceberg.expiry import Expiring
from spark_jobs.formats.iceberg.transforms import VOID

_ZIPPED: Final = (".gz.metadata.json", ".metadata.json.gz")


@dataclass(frozen=True, slots=True)
class WithoutExpired:
    """The table without what expires. A ``Change``.

    ``at_client``: this process, not a server, checks what the catalog is asked for.
    """

    expiring: Expiring
    unreached: UnreachedMetadata
    at_client: bool

    def __str__(self) -> str:
        return f"the expiry of {len(self.expiring.snapshots)} snapshots"

    def updates(self, read: PinnedTable) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Every tag and branch must be as it was read; at the client, there must be no new one.

        A server cannot be asked for the latter. An append, too, makes it refuse.
        """
        refs = {name: ref.snapshot_id for name, ref in read.metadata.refs.items()}
        required: tuple[Any, ...] = tuple(unchanged(*each) for each in refs.items())
        if self.at_client:
            required = (*required, _NoOtherReferences(frozenset(refs)))
        required = (*required, *self.unreached.required(read.metadata))
        return required, (*self._updates(read), *self.unreached.updates())

    def _updates(self, read: PinnedTable) -> Iterator[Any]:
        from pyiceberg.table import update

        gone = set(self.expiring.snapshots)
        # Pyiceberg removes a snapshot's other statistics with it, but not these.
        for statistics in read.metadata.partition_statistics:
            if statistics.snapshot_id in gone:
                of_partitions: dict[str, Any] = {"snapshot-id": statistics.snapshot_id}
                yield update.RemovePartitionStatisticsUpdate(**of_partitions)
        for name in self.expiring.refs:
            ref: dict[str, Any] = {"ref-name": name}
            yield update.RemoveSnapshotRefUpdate(**ref)
        # Servers on Iceberg 1.8 and before take one snapshot in each update; pyiceberg needs time
        # for each update.
        ids = self.expiring.snapshots
        for part in [ids] if self.at_client else [[each] for each in ids]:
            snapshots: dict[str, Any] = {"snapshot-ids": list(part)}
            if part:
                yield update.RemoveSnapshotsUpdate(**snapshots)

    def is_in(self, read: PinnedTable, now: PinnedTable) -> bool:
        """Whether the table has none of it any longer."""
        del read
        known = {each.snapshot_id for each in now.metadata.snapshots}
        return (
            known.isdisjoint(self.expiring.snapshots)
            and not any(name in now.metadata.refs for name in self.expiring.refs)
            and self.unreached.is_out_of(now.metadata)
        )

    def fits(self, read: PinnedTable, now: PinnedTable) -> bool:
        """Whether its snapshots are there, and tags and branches are as they were read."""
        known = {each.snapshot_id for each in now.metadata.snapshots}
        return (
            known.issuperset(self.expiring.snapshots)
            and all(pointer(now, name) == pointer(read, name) for name in read.metadata.refs)
            and self.unreached.is_in(now.metadata)
        )


@dataclass(frozen=True, slots=True)
class _NoOtherReferences:
    """A requirement as pyiceberg's: the table has no tag or branch but those of ``names``."""

    names: frozenset[str]

    def validate(self, base_metadata: Any) -> None:
        """Raise pyiceberg's error if there is another one."""
        from pyiceberg.exceptions import CommitFailedException

        if base_metadata is None or not self.names.issuperset(base_metadata.refs):
            raise CommitFailedException("there is a new tag or branch")


def refuse_losses(read: PinnedTable, now: PinnedTable, expired: Expiring) -> None:
    """Report the tags and branches that others made after ``read``, and that an expiry took away.

    A server removes a reference with its snapshot. The metadata before the expiry still has it.

    Raises:
        CatalogError: METADATA_UNREADABLE.
        CommitError: REFERENCE_LOST.
        InternalError: STORAGE_UNAVAILABLE.
    """
    gone, lost = set(expired.snapshots), list[str]()
    for location in _metadata_since(read, now):
        document = _document(now, location)
        known = {each["snapshot-id"] for each in document.get("snapshots") or ()}
        # Only what the last metadata before the expiry has: others may delete what they made.
        if not gone.isdisjoint(known):
            lost = [
                f"{ref['type']} {name} (snapshot {ref['snapshot-id']}, in {location})"
                for name, ref in (document.get("refs") or {}).items()
                if name not in read.metadata.refs and ref["snapshot-id"] in gone
            ]
    if lost:
        raise CommitError(
            ErrorCode.REFERENCE_LOST,
            f"{now.place}: somebody else made {', '.join(lost)} while its snapshot "
            "expired; the catalog removed it with the snapshot. No file was removed.",
            "Register the table from that metadata file, or read the rows from there, before "
            "orphan files are removed.",
        )


def _metadata_since(read: PinnedTable, now: PinnedTable) -> list[str]:
    """The locations of metadata files that came after ``read``, but for the newest."""
    logged = [each.metadata_file for each in now.metadata.metadata_log]
    known = read.table.metadata_location
    if known in logged:
        return logged[logged.index(known) + 1 :]
    # The log is short: what it still has may be older, or newer.
    older = {each.metadata_file for each in read.metadata.metadata_log}
    return [each for each in logged if each not in older]


def _document(table: PinnedTable, location: str) -> dict[str, Any]:
    with reading_metadata(table.place):
        try:
            content = table.storage.read(location)
        except FileNotFoundError:
            return {}  # Removed after a commit, as the table's properties say.
        text = gzip.decompress(content) if location.endswith(_ZIPPED) else content
        document: dict[str, Any] = json.loads(text)
    return document


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
