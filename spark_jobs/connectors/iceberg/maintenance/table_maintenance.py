"""Table maintenance: snapshot expiry, orphan files, tags and rollback. Driver only."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import pyarrow.fs as pafs

from spark_jobs.connectors.iceberg.commit.base_notes import BaseNotes
from spark_jobs.connectors.iceberg.commit.metadata_commits import MetadataCommits
from spark_jobs.connectors.iceberg.library.catalogs import IcebergCatalog
from spark_jobs.connectors.iceberg.maintenance.expire_snapshots import SnapshotExpiry
from spark_jobs.connectors.iceberg.maintenance.noted_changes import NotedChanges
from spark_jobs.connectors.iceberg.maintenance.orphans import TableOrphans
from spark_jobs.connectors.iceberg.maintenance.tags_and_rollback import (
    create_tag,
    delete_tag,
    roll_back,
)
from spark_jobs.connectors.iceberg.metadata import IcebergMetadata
from spark_jobs.connectors.shared.maintenance import orphans
from spark_jobs.contract.maintenance import (
    CreateTagSpec,
    DeleteTagSpec,
    ExpireSnapshotsSpec,
    MaintenanceReport,
    RemoveOrphanFilesSpec,
    RollbackSpec,
)
from spark_jobs.contract.operation_files import FOLDER
from spark_jobs.contract.request import TableName
from spark_jobs.spi.alterations import NO_NOTE, ChangeNote
from spark_jobs.spi.writes import always_wanted
from spark_jobs.storage.clock import store_time

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class IcebergMaintenance:
    """Implements ``ConnectorMaintenance``.

    Ages of files are computed by the clock of the table's store, others by that of the workspace's;
    ``clock`` tells the time of the store that has a folder.
    """

    def __init__(
        self,
        catalog: IcebergCatalog,
        metadata: IcebergMetadata,
        notes: BaseNotes,
        clock: Callable[[pafs.FileSystem, str], datetime] = store_time,
    ) -> None:
        self._catalog = catalog
        self._metadata = metadata
        self._notes = notes
        self._clock = clock

    def expire_snapshots(
        self,
        name: TableName,
        spec: ExpireSnapshotsSpec,
        *,
        dry_run: bool,
        require_wanted: Callable[[], None] = always_wanted,
    ) -> MaintenanceReport:
        """Drop snapshots, tags and branches, and the files that nothing else needs."""
        expiry = SnapshotExpiry(self._commits(name), self._notes, spec, self._now(), require_wanted)
        return expiry.planned() if dry_run else expiry.carried_out()

    def remove_orphan_files(
        self,
        name: TableName,
        spec: RemoveOrphanFilesSpec,
        *,
        dry_run: bool,
        spark: SparkSession | None = None,
        require_wanted: Callable[[], None] = always_wanted,
    ) -> MaintenanceReport:
        """Remove files that belong to no snapshot of the table."""
        table_orphans = TableOrphans.of(self._commits(name), self._notes)
        now = self._clock(
            table_orphans.read.storage.filesystem, f"{table_orphans.folders.root}/metadata"
        )
        limit = orphans.safe_limit(spec, now)
        summary = orphans.remove(
            table_orphans.search(spark),
            table_orphans.read.storage.remover(),
            limit,
            partial(table_orphans.operations_since, now, self._now()),
            require_wanted,
            dry_run=dry_run,
        )
        latest = table_orphans.read.snapshot
        return orphans.report(summary, table_orphans.folders.root, latest and latest.snapshot_id)

    def create_tag(
        self, name: TableName, spec: CreateTagSpec, *, note: ChangeNote = NO_NOTE
    ) -> MaintenanceReport:
        """Create a tag that names a snapshot, unless the name is taken."""
        return create_tag(self._noted(name, note), spec)

    def delete_tag(
        self, name: TableName, spec: DeleteTagSpec, *, dry_run: bool, note: ChangeNote = NO_NOTE
    ) -> MaintenanceReport:
        """Delete tags; their snapshots stay until they expire."""
        return delete_tag(self._noted(name, note), spec, self._now(), dry_run=dry_run)

    def roll_back(
        self,
        name: TableName,
        spec: RollbackSpec,
        *,
        dag_id: str,
        dry_run: bool,
        note: ChangeNote = NO_NOTE,
    ) -> MaintenanceReport:
        """Move the branch back to a snapshot of its history."""
        return roll_back(self._noted(name, note), spec, dag_id=dag_id, dry_run=dry_run)

    def _now(self) -> datetime:
        workspace = self._notes.storage
        # Whatever is left in this folder is swept with the operations.
        return self._clock(workspace.filesystem, f"{workspace.root}/{FOLDER}")

    def _noted(self, name: TableName, note: ChangeNote) -> NotedChanges:
        return NotedChanges(self._commits(name), note)

    def _commits(self, name: TableName) -> MetadataCommits:
        return MetadataCommits(self._catalog, self._metadata, name)
