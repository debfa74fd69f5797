"""A maintenance statement from start to end, those about branches among them.

It has no rows and no snapshot of its own. The removal of orphan files is told which rows were kept
for other tables that no later try inserts any more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, cast, get_args

import pyarrow.fs as pafs

from spark_jobs.contract.maintenance import (
    BranchStatement,
    CreateBranchSpec,
    CreateTagSpec,
    DeleteBranchSpec,
    DeleteTagSpec,
    ExpireSnapshotsSpec,
    FastForwardSpec,
    MaintenanceReport,
    MaintenanceStatement,
    RemoveOrphanFilesSpec,
    RollbackSpec,
    SetCurrentSnapshotSpec,
)
from spark_jobs.contract.progress_note import catalog_mark
from spark_jobs.contract.properties import operation_properties
from spark_jobs.contract.request import JobRequest, TableName
from spark_jobs.contract.result import JobResult, Metrics, Status
from spark_jobs.contract.side_outputs import recorded_side_outputs, side_operation
from spark_jobs.engine.changes.kept_rows import KeptRows, kept_rows, side_folders
from spark_jobs.engine.job.noted_job import NotedJob
from spark_jobs.engine.job.side_job import has_rows_of
from spark_jobs.engine.marks.undone_marks import forget_left
from spark_jobs.engine.runtime.leftovers import leftovers_of
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.engine.runtime.permission import Fence
from spark_jobs.errors import JobError, NotSupportedError
from spark_jobs.spi.alterations import ChangeNote
from spark_jobs.spi.branches import Publishing
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import TableHandle

_Statement = (
    ExpireSnapshotsSpec | RemoveOrphanFilesSpec | CreateTagSpec | DeleteTagSpec | RollbackSpec
)


@dataclass(frozen=True, slots=True)
class MaintenanceJob(NotedJob):
    """A request for maintenance on an open catalog."""

    statements: ClassVar[tuple[type, ...]] = get_args(MaintenanceStatement)
    without_session: ClassVar[tuple[type, ...]] = statements

    def done(self) -> JobResult:
        """Take care of the table, unless an earlier try has."""
        earlier = self.log.earlier(self.request)
        if earlier is not None:
            return earlier
        if not self.request.dry_run:
            self.fence.enter()
        with self.progress.phase(self.request.statement.kind):
            report = self._report()
        changed: Status = "committed" if report.changes else "unchanged"
        status = "dry_run" if self.request.dry_run else changed
        metrics = Metrics(seconds=self.progress.seconds)
        return replace(OperationLog.ended(self.request, status, metrics), maintenance=report)

    def release(self, result: JobResult) -> None:
        """As ``NotedJob.release``; expiries and searches for orphan files note nothing."""
        if not isinstance(self.request.statement, ExpireSnapshotsSpec | RemoveOrphanFilesSpec):
            NotedJob.release(self, result)

    def _report(self) -> MaintenanceReport:
        if isinstance(self.request.statement, BranchStatement):
            report = _changed_branches(self.request, self.connector, self.fence, self.note)
            if isinstance(self.request.statement, SetCurrentSnapshotSpec):
                self._forget_marks()
            return report
        maintenance = self.connector.maintenance
        target, dry_run = self.request.table, self.request.dry_run
        if maintenance is None:
            raise NotSupportedError(
                f"{self.request.catalog.connector}: there is no table maintenance on this catalog.",
                "Use the engine that made the table, or what the catalog's server offers.",
            )
        match cast("_Statement", self.request.statement):
            case ExpireSnapshotsSpec() as spec:
                return maintenance.expire_snapshots(
                    target, spec, dry_run=dry_run, require_wanted=self.fence.require_none
                )
            case RemoveOrphanFilesSpec() as spec:
                report = maintenance.remove_orphan_files(
                    target,
                    spec,
                    dry_run=dry_run,
                    spark=self.spark,
                    require_wanted=self.fence.require_none,
                )
                return self._without_leftovers(spec, report)
            case CreateTagSpec() as spec:
                return maintenance.create_tag(target, spec, note=self.note)
            case DeleteTagSpec() as spec:
                return maintenance.delete_tag(target, spec, dry_run=dry_run, note=self.note)
            case spec:
                dag_id = self.request.origin.dag_id
                report = maintenance.roll_back(
                    target, spec, dag_id=dag_id, dry_run=dry_run, note=self.note
                )
                self._forget_marks()
                return report

    def _forget_marks(self) -> None:
        """Forget the marks of snapshots that are not in the table's history any more."""
        if not self.request.dry_run:
            table = self.connector.metadata.load_table(self.request.table)
            forget_left(self.connector, table)

    def _without_leftovers(
        self, spec: RemoveOrphanFilesSpec, report: MaintenanceReport
    ) -> MaintenanceReport:
        """Remove what killed jobs left in the workspace, for any table; a dry run only counts."""
        settled = _settled_folders(self.connector, catalog_mark(self.request.catalog))
        leftovers = leftovers_of(self.connector.storage, spec.older_than, more=settled)
        if not self.request.dry_run:
            leftovers.remove()
        return leftovers.added_to(report)


def _changed_branches(
    request: JobRequest, connector: Connector, fence: Fence, note: ChangeNote
) -> MaintenanceReport:
    """Carry out a ``BranchStatement``.

    Raises:
        NotSupportedError: the connector has none.
        JobError: as the methods of ``ConnectorBranches``.
    """
    branches, target, dry_run = connector.branches, request.table, request.dry_run
    if branches is None:
        raise NotSupportedError(
            f"{request.statement.kind}: branches of tables of this catalog of "
            f"{request.catalog.connector} are not created, deleted or moved here.",
            "Use the engine that made the table, or what the catalog's server offers.",
        )
    publishing = Publishing(operation_properties(request, None), fence.require_none)
    match cast("BranchStatement", request.statement):
        case CreateBranchSpec() as spec:
            return branches.create_branch(target, spec, note=note)
        case DeleteBranchSpec() as spec:
            return branches.delete_branch(target, spec, dry_run=dry_run, note=note)
        case FastForwardSpec() as spec:
            return branches.fast_forward(target, spec, publishing, dry_run=dry_run, note=note)
        case SetCurrentSnapshotSpec() as spec:
            dag_id = request.origin.dag_id
            return branches.set_current_snapshot(
                target, spec, dag_id=dag_id, dry_run=dry_run, note=note
            )
        case spec:
            return branches.cherry_pick(target, spec, publishing, dry_run=dry_run, note=note)


def _settled_folders(connector: Connector, catalog: str) -> list[str]:
    """The folders whose rows are in their tables, or were certainly never published.

    ``catalog`` is the mark of the connector's; others may have the same workspace.

    Where that is not certain, as the table or its history is gone, the rows are kept.

    Raises:
        OSError: the storage refused.
    """
    folders = side_folders(connector.storage, catalog)
    return [each for each in folders if _is_settled(connector, each)]


def _is_settled(connector: Connector, folder: str) -> bool:
    storage = connector.storage
    inside = pafs.FileSelector(f"{storage.root}/{folder}", allow_not_found=True)
    parts = [f"{folder}/{each.base_name}" for each in storage.filesystem.get_file_info(inside)]
    try:
        notes = [(part, kept_rows(storage, part)) for part in parts]
        # Without a note, the run was killed before it could publish.
        return all(_part_is_settled(connector, *each) for each in notes if each[1] is not None)
    except JobError:
        return False


def _part_is_settled(connector: Connector, part: str, kept: KeptRows | None) -> bool:
    assert kept is not None  # noqa: S101 - see above
    stored = OperationLog(connector.storage).read(kept.operation_id)
    if stored is not None and stored.error is None:
        return True
    target = connector.metadata.load_table(TableName.parse(kept.target))
    commit = connector.writes.find_commit(target, kept.operation_id)
    if commit is None:
        return _is_known_since(connector, target, kept.base)
    if part not in {each.folder for each in recorded_side_outputs(commit.properties)}:
        return True
    side = connector.metadata.load_table(TableName.parse(kept.table))
    return has_rows_of(connector, side, side_operation(kept.operation_id, kept.kind), part)


def _is_known_since(connector: Connector, target: TableHandle, base: int | None) -> bool:
    """Whether the table has every snapshot that was made on ``base``, or it was rolled back.

    Raises:
        CommitError: COMMIT_HISTORY_EXPIRED.
    """
    if base is None:
        return target.snapshot_id is None
    connector.writes.recall(target, base)
    return True
