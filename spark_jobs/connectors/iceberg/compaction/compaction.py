"""Compactions of Iceberg tables: plan them, publish them, clean up after them. Driver only."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from spark_jobs.connectors.iceberg.commit.base_notes import BaseNotes
from spark_jobs.connectors.iceberg.commit.changes import Changes
from spark_jobs.connectors.iceberg.commit.history import Gap, find_commits
from spark_jobs.connectors.iceberg.commit.manifest_clusters import planned_rewrite
from spark_jobs.connectors.iceberg.commit.snapshot_commit import SnapshotCommits
from spark_jobs.connectors.iceberg.compaction.delete_plan import planned_deletes
from spark_jobs.connectors.iceberg.compaction.part_compactor import (
    IcebergPartCompactor,
    remove_new_files,
)
from spark_jobs.connectors.iceberg.compaction.plan import CompactionOptions, planned_parts
from spark_jobs.connectors.iceberg.compaction.publication import Publication
from spark_jobs.connectors.iceberg.library.catalogs import IcebergCatalog
from spark_jobs.connectors.iceberg.metadata import IcebergMetadata
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable, pinned_table
from spark_jobs.connectors.iceberg.write.table_layout import data_location, new_file_layout
from spark_jobs.connectors.shared.commit.commit_loop import before_publication, until_committed
from spark_jobs.connectors.shared.compaction.plan import (
    DEFAULT_SIZE,
    GroupSize,
    Limits,
    planned_groups,
)
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.compaction_record import ManifestRecord
from spark_jobs.contract.properties import published_properties
from spark_jobs.formats.iceberg.compaction import refuse_uncompactable
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

_Rewritten = tuple[CommittedSnapshot | None, ManifestRecord]


class _Behind(NamedTuple):
    """The snapshots behind ``table``, as far as they have been read."""

    table: PinnedTable
    gap: Gap


class IcebergCompaction:
    """Implements ``ConnectorCompaction``."""

    def __init__(
        self,
        catalog: IcebergCatalog,
        metadata: IcebergMetadata,
        notes: BaseNotes,
        group_size: GroupSize = DEFAULT_SIZE,
    ) -> None:
        self._catalog = catalog
        self._metadata = metadata
        self._notes = notes
        self._group_size = group_size
        self._behind: _Behind | None = None

    def plan(
        self, table: TableHandle, spec: CompactSpec, wanted: WantedPartition
    ) -> CompactionPlan:
        """What ``spec`` compacts in the pinned snapshot of ``table``."""
        self._metadata.require_writable(table)
        target = pinned_table(table)
        refuse_uncompactable(table.name, target.metadata)
        names = [field.name for field in table.partitioned_by]
        options = CompactionOptions.of(table, spec)
        if spec.mode == "deletes":
            parts = planned_deletes(table.name, target, options.min_files, wanted)
        else:
            parts = planned_parts(table.name, target, options, wanted)
        return planned_groups(names, parts, Limits.of(spec), self._group_size)

    def begin(self, table: TableHandle, operation_id: str) -> None:
        """Note the pinned snapshot, from which a later try looks for what this one committed."""
        self._notes.set(operation_id, pinned_table(table))

    def compactor(self, table: TableHandle, spec: CompactSpec) -> PartCompactor:
        """What executors need to compact the parts of one group."""
        target = pinned_table(table)
        options = CompactionOptions.of(table, spec)
        layout = new_file_layout(target, target.storage.filesystem, options.target_file_size)
        layout = layout.of_old_rows() if target.has_lineage else layout
        return IcebergPartCompactor(
            token=uuid.uuid4().hex,
            layout=layout,
            fields=target.stored_fields,
            names=target.name_mapping,
            order=options.order,
        )

    def publish(
        self, table: TableHandle, results: Sequence[PartResult], commit: GroupCommit
    ) -> PublishedGroup:
        """Publish the results of a group's parts as one snapshot of the operation ``replace``."""
        target = pinned_table(table)
        if self._behind is None or self._behind.table is not target:
            self._behind = _Behind(target, Gap(target))
        commits = SnapshotCommits(self._catalog, self._metadata, table)
        group = Publication(commits, self._behind.gap, commit).run(results)
        for result in results:
            if result.part.number in group.lost:
                with suppress(OSError):
                    remove_new_files(target.storage.filesystem, result.fragments)
        return group

    def planned_manifests(self, table: TableHandle) -> ManifestRecord:
        """What a rewrite of the manifests of the pinned snapshot would do.

        Raises:
            NotSupportedError: the table, a file or a property is not supported; gives the reason.
            CatalogError: METADATA_UNREADABLE.
            InternalError: STORAGE_UNAVAILABLE.
        """
        self._metadata.require_writable(table)
        return planned_rewrite(pinned_table(table)).record

    def rewrite_manifests(
        self, table: TableHandle, commit: ManifestCommit
    ) -> tuple[CommittedSnapshot | None, ManifestRecord]:
        """Write the manifests of the latest snapshot anew; None: they are as that leaves them.

        Whatever others commit meanwhile, those of the newest snapshot are planned again.
        """
        self._metadata.require_writable(table)
        commits = SnapshotCommits(self._catalog, self._metadata, table)
        return until_committed(partial(_attempt, commits, commit))

    def abandon(self, table: TableHandle, compactor: PartCompactor) -> None:
        """Remove every file that tasks wrote with ``compactor``; none of them is published."""
        assert isinstance(compactor, IcebergPartCompactor)  # noqa: S101 - from this class
        target = pinned_table(table)
        root = target.storage.path(data_location(target))
        remove_with_prefixes(target.storage.filesystem, root, (compactor.token,))

    def commits(self, table: TableHandle, operation_id: str) -> Sequence[CommittedSnapshot]:
        """The snapshots of the operation that have not expired, oldest first."""
        return find_commits(pinned_table(table), operation_id)

    def end(self, table: TableHandle, operation_id: str) -> None:
        """Remove the note: the operation's result is stored."""
        del table
        self._notes.remove(operation_id)


def _attempt(commits: SnapshotCommits, commit: ManifestCommit, number: int) -> _Rewritten | None:
    with before_publication():
        latest = commits.latest()
        rewrite = planned_rewrite(latest)
        if rewrite.changes_nothing:
            return None, rewrite.record
        recorded = published_properties(commit.properties(rewrite.record), number, 0)
        changes = Changes([], [], rewrite.removed, [], replaces=True)
        summary = {**recorded, **rewrite.summary}
    snapshot = commits.publish(latest, changes, summary, commit.require_wanted, rewrite)
    return None if snapshot is None else (snapshot, rewrite.record)
