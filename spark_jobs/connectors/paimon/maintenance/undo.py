"""Taking back what a run committed to a table, by one snapshot. Driver only."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.commit.history import COMMIT_IDENTIFIER, find_commit
from spark_jobs.connectors.paimon.commit.new_snapshot import Commit
from spark_jobs.connectors.paimon.commit.publish import SnapshotStore, publish_snapshot
from spark_jobs.connectors.paimon.maintenance.undo_files import RestoredFiles
from spark_jobs.connectors.paimon.maintenance.undo_plan import UndoPlan, planned
from spark_jobs.connectors.paimon.metadata import PaimonMetadata
from spark_jobs.connectors.paimon.table.table_handle import pinned_table
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
class PaimonUndo:
    """Implements ``ConnectorUndo``."""

    metadata: PaimonMetadata
    filesystem: pafs.FileSystem
    store: SnapshotStore

    def earlier(self, name: TableName, undoing: Undoing) -> TableUndo | None:
        """What an earlier try of the operation did to the table."""
        table = self.metadata.load_table(name)
        committed = find_commit(self.filesystem, table, undoing.properties[OPERATION_ID])
        if committed is None:
            return None
        return TableUndo(str(name), "undone", snapshot_id=committed.snapshot_id)

    def planned(self, name: TableName, undoing: Undoing) -> TableUndo:
        """What would be done; nothing is stored."""
        return _report(name, self._plan(name, undoing))

    def undone(self, name: TableName, undoing: Undoing) -> TableUndo:
        """Take back what the run committed."""
        files = RestoredFiles(self.filesystem, name)
        try:
            return until_committed(lambda _number: self._attempt(name, undoing, files))
        except JobError as error:
            if error.code is not ErrorCode.COMMIT_OUTCOME_UNKNOWN:
                files.discard()
            raise

    def _attempt(self, name: TableName, undoing: Undoing, files: RestoredFiles) -> TableUndo | None:
        """The report; None if another writer was faster."""
        plan = self._plan(name, undoing)
        report, table = _report(name, plan), plan.table
        undoing.require_approved(report)
        if report.outcome == "unchanged":
            return report
        with before_publication():
            change = files.change(plan)
        base = None if table.snapshot is None else int(table.snapshot.id)
        recorded = recorded_properties(name, undoing, plan.commits, base)
        commit = Commit(undoing.properties[OPERATION_ID], COMMIT_IDENTIFIER, recorded)
        done = publish_snapshot(self.store, table, change, commit, undoing.require_wanted)
        return None if done is None else replace(report, outcome="undone", snapshot_id=done)

    def _plan(self, name: TableName, undoing: Undoing) -> UndoPlan:
        handle = self.metadata.load_table(name)
        plan = planned(name, pinned_table(handle), undoing)
        if not plan.is_empty:
            self.metadata.require_writable(handle)
            self._require_files(name, plan)
        return plan

    def _require_files(self, name: TableName, plan: UndoPlan) -> None:
        """Check that all files that must come back are there."""
        vectors = [each.vector for each in plan.back] + list(plan.marks.values())
        needed = [each.path for each in plan.back]
        needed += sorted({each.path for each in vectors if each is not None})
        found = in_parallel(lambda path: self.filesystem.get_file_info(path).is_file, needed)
        for path, is_there in zip(needed, found, strict=True):
            if not is_there:
                raise files_expired(name, path)


def _report(name: TableName, plan: UndoPlan) -> TableUndo:
    oldest = plan.history[-1] if plan.history else None
    is_whole = oldest is None or oldest.snapshot_id == 1
    report = base_report(name, plan.commits, oldest, is_whole)
    vectors = [each.vector for each in plan.back if each.vector is not None]
    vectors += [each for each in plan.marks.values() if each is not None]
    copied = sum(each.entry.file.file_size for each in plan.back)
    return replace(
        report,
        outcome="unchanged" if plan.is_empty else report.outcome,
        files_removed=len(plan.gone),
        files_restored=len(plan.back),
        deletes_restored=len(plan.marks),
        bytes_copied=copied + sum(each.length for each in vectors),
    )
