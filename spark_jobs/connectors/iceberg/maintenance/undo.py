"""Taking back what a run committed to a table, by one snapshot. Driver only."""

from __future__ import annotations

from dataclasses import dataclass, replace

from spark_jobs.connectors.iceberg.commit.find_commit import find_commit
from spark_jobs.connectors.iceberg.commit.snapshot_commit import SnapshotCommits
from spark_jobs.connectors.iceberg.library.catalogs import IcebergCatalog
from spark_jobs.connectors.iceberg.maintenance.undo_files import RestoredFiles
from spark_jobs.connectors.iceberg.maintenance.undo_plan import (
    UndoPlan,
    first_of,
    history_of,
    planned,
)
from spark_jobs.connectors.iceberg.metadata import IcebergMetadata
from spark_jobs.connectors.iceberg.table.manifests import DATA
from spark_jobs.connectors.iceberg.table.pinned_table import pinned_table
from spark_jobs.connectors.shared.commit.commit_loop import before_publication, until_committed
from spark_jobs.connectors.shared.maintenance.undo import (
    base_report,
    files_expired,
    recorded_properties,
)
from spark_jobs.contract.properties import OPERATION_ID
from spark_jobs.contract.request import TableName
from spark_jobs.contract.undo import TableUndo
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.undo import Undoing
from spark_jobs.storage.parallel import in_parallel


@dataclass(frozen=True, slots=True)
class IcebergUndo:
    """Implements ``ConnectorUndo``."""

    catalog: IcebergCatalog
    metadata: IcebergMetadata

    def earlier(self, name: TableName, undoing: Undoing) -> TableUndo | None:
        """What an earlier try of the operation did to the table."""
        table = pinned_table(self.metadata.load_table(name))
        committed = find_commit(table, undoing.properties[OPERATION_ID], None)
        if committed is None:
            return None
        return TableUndo(str(name), "undone", snapshot_id=committed.snapshot_id)

    def planned(self, name: TableName, undoing: Undoing) -> TableUndo:
        """What would be done; nothing is stored."""
        return self._report(name, self._plan(name, undoing))

    def undone(self, name: TableName, undoing: Undoing) -> TableUndo:
        """Take back what the run committed."""
        files = RestoredFiles(name)
        try:
            return until_committed(lambda _number: self._attempt(name, undoing, files))
        except JobError as error:
            if error.code is not ErrorCode.COMMIT_OUTCOME_UNKNOWN:
                files.discard(pinned_table(self.metadata.load_table(name)))
            raise

    def _attempt(self, name: TableName, undoing: Undoing, files: RestoredFiles) -> TableUndo | None:
        """The report; None if another writer was faster."""
        plan = self._plan(name, undoing)
        report = self._report(name, plan)
        undoing.require_approved(report)
        if report.outcome == "unchanged":
            return report
        handle = self.metadata.load_table(name)
        table = plan.table
        with before_publication():
            changes = files.changes(plan)
        base = None if table.snapshot is None else int(table.snapshot.snapshot_id)
        recorded = recorded_properties(name, undoing, plan.commits, base)
        commits = SnapshotCommits(self.catalog, self.metadata, handle)
        done = commits.publish(table, changes, recorded, undoing.require_wanted)
        if done is None:
            return None
        return replace(report, outcome="undone", snapshot_id=done.snapshot_id)

    def _plan(self, name: TableName, undoing: Undoing) -> UndoPlan:
        handle = self.metadata.load_table(name)
        table = pinned_table(handle)
        plan = planned(name, table, undoing)
        if not plan.is_empty:
            self.metadata.require_writable(handle)
            _require_files(name, plan)
        return plan

    def _report(self, name: TableName, plan: UndoPlan) -> TableUndo:
        report = base_report(name, plan.commits, *first_of(history_of(plan.table)))
        data = [each for each in plan.gone.values() if each.content == DATA]
        copied = [each.entry.size for each in plan.back]
        copied += [each.size for each in plan.marks]
        copied += [each.size for file in plan.back for each in file.deletes]
        return replace(
            report,
            outcome="unchanged" if plan.is_empty else report.outcome,
            files_removed=len(data),
            files_restored=len(plan.back),
            deletes_restored=len(plan.gone) - len(data) + len(plan.marks),
            bytes_copied=sum(copied),
        )


def _require_files(name: TableName, plan: UndoPlan) -> None:
    """Check that all files that must come back are there."""
    storage = plan.table.storage
    needed = [each.entry.path for each in plan.back]
    needed += [each.path for file in plan.back for each in file.deletes]
    needed += [each.path for each in plan.marks]
    found = in_parallel(
        lambda each: storage.filesystem.get_file_info(storage.path(each)).is_file, needed
    )
    for path, is_there in zip(needed, found, strict=True):
        if not is_there:
            raise files_expired(name, path)
