"""A table's metadata without what expires, and what others lose by that. Driver only."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from spark_jobs.connectors.iceberg.maintenance.references import pointer, unchanged
from spark_jobs.connectors.iceberg.maintenance.unreached_metadata import UnreachedMetadata
from spark_jobs.connectors.iceberg.table.metadata_errors import reading_metadata
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.formats.iceberg.expiry import Expiring

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
