"""The undo of a run from start to end: all tables are planned before the first one is changed.

A dry run makes a ticket of the plans; with it, a run does exactly what was approved.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import ClassVar, cast

from spark_jobs.contract.approval import SourceEvidence, Ticket, stale
from spark_jobs.contract.properties import operation_properties
from spark_jobs.contract.request import JobRequest, TableName
from spark_jobs.contract.result import JobResult, Metrics, Status
from spark_jobs.contract.undo import TableUndo, UndoReport, UndoRunSpec
from spark_jobs.engine.job.request_job import RequestJob
from spark_jobs.engine.marks.undone_marks import note_undone, require_newest_marks
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.engine.runtime.permission import Fence
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
            return replace(self._result(plans), ticket=_undo_ticket(self.request, plans))
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


def _undo_ticket(request: JobRequest, plans: Sequence[TableUndo]) -> Ticket:
    """The ticket of a dry run: its sources are the tables, with what is planned for each."""
    return Ticket(
        operation_id=request.operation_id,
        target=str(request.table),
        digests=request.part_digests(),
        columns="",
        sources={each.table: _evidence(each) for each in plans},
        inserted=sum(each.deleted for each in plans),
        updated=sum(each.updated for each in plans),
        deleted=sum(each.inserted for each in plans),
    )


@dataclass(frozen=True, slots=True)
class UndoApproval:
    """The ``ticket`` that was approved, if there is one, for the undo of ``request``."""

    ticket: Ticket | None

    @classmethod
    def of(cls, request: JobRequest) -> UndoApproval:
        """The approval of a request, which is for this request.

        Raises:
            CommitError: APPROVAL_STALE, naming what differs.
        """
        ticket = request.approved
        if ticket is not None:
            spec = cast("UndoRunSpec", request.statement)
            known, asked = set(ticket.sources), set(spec.tables)
            if known != asked:
                more, fewer = (", ".join(sorted(each)) for each in (asked - known, known - asked))
                differences = [f"{more} had no commit of the run"] if more else []
                differences += [f"{fewer} has none any more"] if fewer else []
                raise stale("; ".join(differences))
            ticket.require_same(request.part_digests(), str(request.table))
        return cls(ticket)

    def require(self, table: TableUndo) -> None:
        """Check that what is planned for a table is what was approved.

        Raises:
            CommitError: APPROVAL_STALE, naming the table.
        """
        if self.ticket is None:
            return
        was, now = self.ticket.sources.get(table.table), _evidence(table)
        if was == now:
            return
        untouched = f"Nothing was done to {table.table}."
        if table.outcome == "refused":
            raise stale(f"{table.table} can not be undone any more: {table.reason}", untouched)
        raise stale(
            f"{table.table}: of the run, {_told(was)} would have been taken back, and {_told(now)} "
            "would be now",
            untouched,
        )


def _told(evidence: SourceEvidence | None) -> str:
    if evidence is None or evidence.snapshot_id is None:
        return "nothing"
    return f"snapshot {evidence.snapshot_id} and what is before it ({evidence.files} files)"


def _evidence(table: TableUndo) -> SourceEvidence:
    """What decides about an undo: the snapshots, and what happens to files and rows.

    Not which snapshots have expired besides, nor how a refusal is told.
    """
    outcome = "planned" if table.outcome == "undone" else table.outcome
    meant = replace(table, outcome=outcome, snapshot_id=None, oldest=None, reason="")
    canonical = json.dumps(asdict(meant), sort_keys=True, separators=(",", ":"))
    return SourceEvidence(
        snapshot_id=table.commits[0].snapshot_id if table.commits else None,
        files=table.files_removed + table.files_restored + table.deletes_restored,
        bytes=table.bytes_copied,
        digest=hashlib.sha256(canonical.encode()).hexdigest(),
    )
