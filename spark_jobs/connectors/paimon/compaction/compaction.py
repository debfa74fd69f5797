"""Compactions of Paimon tables: plan them, publish them, clean up after them. Driver only."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.commit.begin_merge import guard_base
from spark_jobs.connectors.paimon.commit.guard import guard_of
from spark_jobs.connectors.paimon.commit.history import Gap
from spark_jobs.connectors.paimon.commit.publish import SnapshotStore
from spark_jobs.connectors.paimon.compaction.append_compactor import Compactor, PaimonPartCompactor
from spark_jobs.connectors.paimon.compaction.append_plan import append_compactor, append_parts
from spark_jobs.connectors.paimon.compaction.keyed_plan import keyed_compactor, keyed_parts
from spark_jobs.connectors.paimon.compaction.options import CompactionOptions
from spark_jobs.connectors.paimon.compaction.publication import (
    Publication,
    group_snapshots,
    next_identifier,
)
from spark_jobs.connectors.paimon.library.metadata_checks import (
    place_of_metadata,
    reading_metadata,
)
from spark_jobs.connectors.paimon.metadata import PaimonMetadata
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.connectors.paimon.write.table_layout import NamePrefixes
from spark_jobs.connectors.shared.compaction.plan import (
    DEFAULT_SIZE,
    GroupSize,
    Limits,
    PlannedPart,
    asked_terms,
    planned_groups,
)
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.compaction_record import ManifestRecord
from spark_jobs.formats.paimon.compaction import (
    manifests_refusal,
    refuse_deletes,
    refuse_manifests,
    refuse_uncompactable,
    refuse_unsortable,
)
from spark_jobs.spi.compaction import (
    CompactionPlan,
    GroupCommit,
    ManifestCommit,
    PartCompactor,
    PartResult,
    PublishedGroup,
    WantedPartition,
)
from spark_jobs.spi.tables import CommittedSnapshot, TableHandle
from spark_jobs.storage.removal import remove_with_prefixes


class _Behind(NamedTuple):
    """The snapshots behind ``table``, as far as they have been read.

    ``identifier``: the next commit identifier of the operation when ``table`` was loaded.
    """

    table: PinnedTable
    operation_id: str
    gap: Gap
    identifier: int


class PaimonCompaction:
    """Implements ``ConnectorCompaction``."""

    def __init__(
        self,
        metadata: PaimonMetadata,
        filesystem: pafs.FileSystem,
        snapshots: SnapshotStore,
        group_size: GroupSize = DEFAULT_SIZE,
    ) -> None:
        self._metadata = metadata
        self._filesystem = filesystem
        self._snapshots = snapshots
        self._group_size = group_size
        self._behind: _Behind | None = None

    def plan(
        self, table: TableHandle, spec: CompactSpec, wanted: WantedPartition
    ) -> CompactionPlan:
        """What ``spec`` compacts in the pinned snapshot of ``table``."""
        self._metadata.require_writable(table)
        target = pinned_table(table)
        refuse_uncompactable(table.name, target.options)
        refuse_unsortable(table.name, spec, target.schema.primary_keys, target.options)
        asked_terms(table, spec)
        refuse_manifests(table.name, spec)
        refuse_deletes(table.name, spec)
        self._metadata.plan_files(table)
        options = CompactionOptions.of(target, spec)
        keys, limits = target.schema.partition_keys, Limits.of(spec)
        with reading_metadata(place_of_metadata(target.table)):
            parts = self._parts(target, options, wanted)
            return planned_groups(keys, parts, limits, self._group_size)

    def begin(self, table: TableHandle, operation_id: str) -> None:
        """Guard the pinned snapshot, from which a later try looks for what this one committed."""
        guard_base(self._filesystem, table, operation_id)

    def compactor(self, table: TableHandle, spec: CompactSpec) -> PartCompactor:
        """What executors need to compact the parts of one group."""
        target = pinned_table(table)
        options = CompactionOptions.of(target, spec)
        prefixes = NamePrefixes.of(target, str(uuid.uuid4()))
        filesystem = self._filesystem
        real: Compactor
        if target.keyed is None:
            real = append_compactor(table, spec, filesystem, options.target_file_size, prefixes)
        else:
            real = keyed_compactor(target, target.keyed, filesystem, options, prefixes)
        return PaimonPartCompactor(real, filesystem, prefixes)

    def publish(
        self, table: TableHandle, results: Sequence[PartResult], commit: GroupCommit
    ) -> PublishedGroup:
        """Publish the results of a group's parts as one snapshot of the kind COMPACT."""
        behind = self._behind_of(pinned_table(table), commit.operation_id)
        publication = Publication(
            self._metadata,
            self._filesystem,
            self._snapshots,
            table,
            behind.gap,
            commit,
            behind.identifier,
        )
        return publication.run(results)

    def planned_manifests(self, table: TableHandle) -> ManifestRecord:
        """Refuse: Paimon's commits merge manifests."""
        raise manifests_refusal(table.name)

    def rewrite_manifests(
        self, table: TableHandle, commit: ManifestCommit
    ) -> tuple[CommittedSnapshot | None, ManifestRecord]:
        """Refuse: Paimon's commits merge manifests."""
        del commit
        raise manifests_refusal(table.name)

    def abandon(self, table: TableHandle, compactor: PartCompactor) -> None:
        """Remove every file that tasks wrote with ``compactor``; none of them is published."""
        assert isinstance(compactor, PaimonPartCompactor)  # noqa: S101 - from this class
        target = pinned_table(table)
        for root in (target.path, *(target.external.roots if target.external else ())):
            remove_with_prefixes(self._filesystem, root, compactor.prefixes)

    def commits(self, table: TableHandle, operation_id: str) -> Sequence[CommittedSnapshot]:
        """The snapshots of the operation that have not expired, oldest first."""
        found = group_snapshots(self._filesystem, pinned_table(table), operation_id)
        return [CommittedSnapshot(each.id, dict(each.properties or {})) for each in found]

    def end(self, table: TableHandle, operation_id: str) -> None:
        """Release the guard: the operation's result is stored."""
        guard_of(self._filesystem, pinned_table(table), operation_id).release()

    def _parts(
        self, table: PinnedTable, options: CompactionOptions, wanted: WantedPartition
    ) -> Iterator[PlannedPart]:
        if table.keyed is None:
            return append_parts(table, options, wanted)
        return keyed_parts(table, table.keyed, options, wanted)

    def _behind_of(self, table: PinnedTable, operation_id: str) -> _Behind:
        """What is behind ``table``: read anew only if the group before was of another plan."""
        behind = self._behind
        if behind is None or behind.table is not table or behind.operation_id != operation_id:
            own = group_snapshots(self._filesystem, table, operation_id)
            identifier = next_identifier(own, operation_id)
            behind = self._behind = _Behind(table, operation_id, Gap(table), identifier)
        return behind
