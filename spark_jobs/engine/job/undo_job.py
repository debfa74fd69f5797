"""The undo of a run from start to end: all tables are planned before the first one is changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, cast

from spark_jobs.contract.properties import operation_properties
from spark_jobs.contract.request import TableName
from spark_jobs.contract.result import JobResult, Metrics, Status
from spark_jobs.contract.undo import TableUndo, UndoReport, UndoRunSpec
from spark_jobs.engine.job.request_job import RequestJob
from spark_jobs.engine.job.undo_approval import UndoApproval, undo_ticket
from spark_jobs.engine.marks.undone_marks import note_undone, require_newest_marks
from spark_jobs.engine.runtime.fence import Fence
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.errors import ErrorCode, JobError, NotSupportedError, error_of
from spark_jobs.spi.undo import ConnectorUndo, Undoing

# What says that a table cannot be undone; anything else is a failure.
_REFUSALS = frozenset(
    (
        ErrorCode.COMMITS_OF_OTHERS,
        ErrorCode.COMMIT_HISTORY_EXPIRED,
        ErrorCode.NOT_SUPPORTED,
        ErrorCode.TABLE_NOT_FOUND,
    )
)


@dataclass(frozen=True, slots=True)
class UndoJob(RequestJob):
    """A request to take back what a run committed, on an open catalog."""

    statements: ClassVar[tuple[type, ...]] = (UndoRunSpec,)
    without_session: ClassVar[tuple[type, ...]] = statements

    def done(self) -> JobResult:
        """Undo the run, unless an earlier try has; that of the tables it got to is kept."""
        earlier = self.log.earlier(self.request)
        if earlier is not None:
            return earlier
        fence = Fence.of(self.request, self.connector.storage)
        if not self.request.dry_run:
            fence.enter()
        spec = cast("UndoRunSpec", self.request.statement)
        properties = operation_properties(self.request, None)
        approval = UndoApproval.of(self.request)

        def require(table: TableUndo) -> None:
            approval.require(table)
            if table.outcome == "planned":
                self._require_newest_marks(TableName.parse(table.table), spec)

        undoing = Undoing(spec.dag_id, spec.run_id, properties, fence.require_none, require)
        with self.progress.phase("plan"):
            plans = [self._planned(TableName.parse(each), undoing) for each in spec.tables]
        plans.sort(key=_newest, reverse=True)
        if self.request.dry_run:
            return replace(self._result(plans), ticket=undo_ticket(self.request, plans))
        for plan in plans:
            # What an earlier try of this undo has done was approved then.
            if plan.outcome != "undone":
                approval.require(plan)
        if spec.on_refused == "fail":
            _refuse(plans)
        with self.progress.phase("publish"):
            done = self._undone(plans, undoing, spec)
            self._note_marks(done)
        return self._result(done)

    def _undone(
        self, plans: list[TableUndo], undoing: Undoing, spec: UndoRunSpec
    ) -> list[TableUndo]:
        """What became of each table; those of an earlier try stay as they are."""
        outcomes: list[TableUndo] = []
        for plan in plans:
            if plan.outcome != "planned":
                outcomes.append(plan)
                continue
            try:
                outcomes.append(self._undo.undone(TableName.parse(plan.table), undoing))
            except JobError as error:
                is_stale = error.code is ErrorCode.APPROVAL_STALE
                if error.code not in _REFUSALS and not is_stale:
                    raise
                refused = _refused(plan.table, error)
                if spec.on_refused == "fail" or is_stale:
                    raise _too_late(error, outcomes) from error
                outcomes.append(refused)
        return outcomes

    def _note_marks(self, done: list[TableUndo]) -> None:
        """Note marks that were taken back, also where an earlier try ended before it did so."""
        for table_undo in done:
            if table_undo.outcome == "undone":
                table = self.connector.metadata.load_table(TableName.parse(table_undo.table))
                note_undone(self.connector, table, self.request.operation_id)

    def _planned(self, name: TableName, undoing: Undoing) -> TableUndo:
        """What is to be done to a table: nothing if an earlier try has done it."""
        try:
            if not self.request.dry_run:
                earlier = self._undo.earlier(name, undoing)
                if earlier is not None:
                    return earlier
            self._require_newest_marks(name, cast("UndoRunSpec", self.request.statement))
            return self._undo.planned(name, undoing)
        except JobError as error:
            if error.code not in _REFUSALS:
                raise
            return _refused(str(name), error)

    def _require_newest_marks(self, name: TableName, spec: UndoRunSpec) -> None:
        """Check the newest state of a table, as a commit since the plan may have moved a mark."""
        table = self.connector.metadata.load_table(name)
        require_newest_marks(self.connector, table, spec.dag_id, spec.run_id)

    @property
    def _undo(self) -> ConnectorUndo:
        """The connector's part.

        Raises:
            NotSupportedError: it has none.
        """
        undo = self.connector.undo
        if undo is None:
            raise NotSupportedError(
                f"undo_run: commits to tables of {self.request.catalog.connector} are not undone.",
                "Roll the tables back with the engine that made them.",
            )
        return undo

    def _result(self, tables: list[TableUndo]) -> JobResult:
        report = UndoReport(tuple(tables))
        metrics = Metrics(
            inserted=sum(each.deleted for each in tables),
            updated=sum(each.updated for each in tables),
            deleted=sum(each.inserted for each in tables),
            seconds=self.progress.seconds,
        )
        changed: Status = "committed" if any(t.outcome == "undone" for t in tables) else "unchanged"
        status: Status = "dry_run" if self.request.dry_run else changed
        return replace(OperationLog.ended(self.request, status, metrics), undo=report)


def _newest(table: TableUndo) -> int:
    return max((each.committed for each in table.commits), default=0)


def _refused(table: str, error: JobError) -> TableUndo:
    return TableUndo(table, "refused", code=error.code.name, reason=str(error))


def _refuse(plans: list[TableUndo]) -> None:
    """Refuse all if one table cannot be undone.

    Raises:
        JobError: names these tables.
    """
    refused = [each for each in plans if each.outcome == "refused"]
    if not refused:
        return
    message = " ".join(each.reason for each in refused)
    remedy = "Nothing was changed. With on_refused='skip', the other tables are undone."
    raise error_of(ErrorCode[refused[0].code], message, remedy)


def _too_late(error: JobError, done: list[TableUndo]) -> JobError:
    """The error for a table that others changed while others were undone already."""
    names = ", ".join(each.table for each in done if each.outcome == "undone") or "none"
    message = f"{error.message} Undone before that: {names}."
    remedy = "Undo what is left with on_refused='skip', or undo the run of this task."
    return error_of(error.code, message, remedy)
