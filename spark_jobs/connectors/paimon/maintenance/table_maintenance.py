"""Table maintenance: snapshot expiry, orphan files, tags and rollback. Driver only."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from spark_jobs.connectors.paimon.maintenance.expire_snapshots import expire_snapshots
from spark_jobs.connectors.paimon.maintenance.orphan_files import (
    folders_of,
    names_of,
    needed_names,
    stored_files,
)
from spark_jobs.connectors.paimon.maintenance.removal_plan import RemovalPlanner
from spark_jobs.connectors.paimon.maintenance.tags_and_rollback import (
    Rollback,
    create_tag,
    delete_tag,
    is_dropped,
)
from spark_jobs.connectors.paimon.metadata import PaimonMetadata
from spark_jobs.connectors.paimon.table.refusals import refuse_tagging
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.connectors.shared.maintenance import orphans
from spark_jobs.connectors.shared.maintenance.orphans import InUse, SparkSearch
from spark_jobs.connectors.shared.maintenance.refusals import no_snapshot, no_tag
from spark_jobs.contract import codec
from spark_jobs.contract.maintenance import (
    CreateTagSpec,
    DeleteTagSpec,
    ExpireSnapshotsSpec,
    MaintenanceReport,
    RemoveOrphanFilesSpec,
    RollbackSpec,
)
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.formats.paimon.expiry import refuse_cleaning
from spark_jobs.formats.paimon.metadata_files import manifest_folder
from spark_jobs.spi.alterations import NO_NOTE, ChangeNote
from spark_jobs.spi.writes import always_wanted
from spark_jobs.storage.clock import StoreClock
from spark_jobs.storage.warehouse import Warehouse

# How often a rollback begins again when others commit all the time.
_ROLLBACKS: Final = 10

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class PaimonMaintenance:
    """Implements ``ConnectorMaintenance``.

    Ages are computed from the time of ``clock``; None: that of the table's store.
    """

    def __init__(
        self,
        metadata: PaimonMetadata,
        storage: Warehouse,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self._metadata = metadata
        self._storage = storage
        self._clock = clock

    def expire_snapshots(
        self,
        name: TableName,
        spec: ExpireSnapshotsSpec,
        *,
        dry_run: bool,
        require_wanted: Callable[[], None] = always_wanted,
    ) -> MaintenanceReport:
        """Drop the oldest snapshots and the files that nothing else needs, in batches."""
        refuse_cleaning(name, spec)
        table = self._table(name)
        now = self._clock_of(table)()
        return expire_snapshots(table, self._storage, spec, now, require_wanted, dry_run=dry_run)

    def remove_orphan_files(
        self,
        name: TableName,
        spec: RemoveOrphanFilesSpec,
        *,
        dry_run: bool,
        spark: SparkSession | None = None,
        require_wanted: Callable[[], None] = always_wanted,
    ) -> MaintenanceReport:
        """Remove files that belong to no snapshot, tag or branch of the table."""
        table = self._table(name)
        now = self._clock_of(table)()
        planner = RemovalPlanner(table, self._storage, now)
        summary = orphans.remove(
            self._search(table, planner, spark),
            self._storage.remover,
            orphans.safe_limit(spec, now),
            planner.operations_since,
            require_wanted,
            dry_run=dry_run,
        )
        latest = table.snapshot.id if table.snapshot else None
        return orphans.report(summary, table.path, latest)

    def _search(
        self, table: PinnedTable, planner: RemovalPlanner, spark: SparkSession | None
    ) -> orphans.OrphanSearch[Any]:
        filesystem, path = self._storage.filesystem, table.path
        files = partial(stored_files, filesystem, path)
        if spark is None:
            return orphans.DriverSearch(
                partial(files, path, True),
                lambda: {each.rpartition("/")[2] for each in planner.in_use()},
            )
        folders = partial(folders_of, filesystem, path, len(table.schema.partition_keys))
        return SparkSearch(spark, filesystem, folders, files, partial(_in_use, table, planner))

    def create_tag(
        self, name: TableName, spec: CreateTagSpec, *, note: ChangeNote = NO_NOTE
    ) -> MaintenanceReport:
        """Create a tag that names a snapshot; the tag's file is written atomically."""
        table = self._table(name)
        refuse_tagging(name, table.schema)
        return create_tag(name, table, self._storage, spec, self._clock_of(table), note)

    def delete_tag(
        self, name: TableName, spec: DeleteTagSpec, *, dry_run: bool, note: ChangeNote = NO_NOTE
    ) -> MaintenanceReport:
        """Delete tags, and the files that only they keep."""
        table = self._table(name)
        refuse_tagging(name, table.schema)
        now = self._clock_of(table)()
        return delete_tag(name, table, self._storage, spec, now, dry_run=dry_run, note=note)

    def roll_back(
        self,
        name: TableName,
        spec: RollbackSpec,
        *,
        dag_id: str,
        dry_run: bool,
        note: ChangeNote = NO_NOTE,
    ) -> MaintenanceReport:
        """Drop the snapshots after a given one; with ``force``, also those that come meanwhile."""
        table = self._table(name)
        refuse_tagging(name, table.schema)
        for _ in range(_ROLLBACKS if spec.force else 1):
            try:
                return self._rolled_back(name, table, spec, dag_id, None if dry_run else note)
            except CommitError as error:
                if error.code is not ErrorCode.COMMIT_CONFLICT:
                    raise
                overtaken = error
        raise overtaken

    def _rolled_back(
        self,
        name: TableName,
        table: PinnedTable,
        spec: RollbackSpec,
        dag_id: str,
        note: ChangeNote | None,
    ) -> MaintenanceReport:
        """``note`` None: nothing is dropped."""
        now = self._clock_of(table)()
        history = RemovalPlanner(table, self._storage, now).history()
        history.refuse_changelogs()
        noted = None if note is None else note.read()
        if noted is not None and is_dropped(history, noted):
            return codec.decode(MaintenanceReport, noted["report"])
        if spec.tag is not None and spec.tag not in history.tags:
            raise no_tag(name, spec.tag, history.tags)
        if spec.snapshot_id is not None and spec.snapshot_id not in history.snapshots:
            raise no_snapshot(name, spec.snapshot_id)
        rollback = Rollback.to(history, spec)
        if not spec.force:
            rollback.refuse_loss(name, dag_id, history.holding(now))
        if note is not None:
            note.write(rollback.noted())
            rollback.carry_out(self._storage)
        return rollback.report()

    def _clock_of(self, table: PinnedTable) -> Callable[[], datetime]:
        # Whatever is left in this folder is an orphan file.
        return self._clock or StoreClock(self._storage.filesystem, f"{table.path}/manifest").now

    def _table(self, name: TableName) -> PinnedTable:
        return pinned_table(self._metadata.load_table(name))


def _in_use(table: PinnedTable, planner: RemovalPlanner) -> InUse:
    references = planner.references()
    numbers = {name: number for number, name in enumerate(references.manifests)}
    folder = manifest_folder(table.path)
    roots = [[numbers[name] for name in root] for root in references.roots]
    return InUse(
        [f"{folder}/{name}" for name in numbers],
        sum(references.manifests.values()),
        references.metadata,
        names_of,
        partial(needed_names, roots),
    )
