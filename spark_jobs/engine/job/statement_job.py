"""One request from start to end: earlier commit, statement, stored result."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Final, get_args

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from spark_jobs.contract.inserts import (
    ClearingStatement,
    InsertStatement,
    PartitionStatement,
)
from spark_jobs.contract.marks import mark_names
from spark_jobs.contract.operation_files import dry_run_folder, new_scratch_folder, new_side_folder
from spark_jobs.contract.progress_note import catalog_mark
from spark_jobs.contract.properties import result_of_snapshot
from spark_jobs.contract.result import JobResult, Metrics, Status
from spark_jobs.contract.side_outputs import SideOutput, recorded_side_outputs
from spark_jobs.contract.statements import RowStatement
from spark_jobs.engine.analysis.text_rules import require_plain_texts
from spark_jobs.engine.changes.kept_rows import remove_side_folder
from spark_jobs.engine.job.approval import Approval, ticket_of
from spark_jobs.engine.job.ended_tries import EndedTries, warnings_of
from spark_jobs.engine.job.new_target import NewTarget
from spark_jobs.engine.job.request_job import RequestJob
from spark_jobs.engine.job.side_job import SideJob
from spark_jobs.engine.job.statement_runs import StatementRuns
from spark_jobs.engine.marks.marks import Marks
from spark_jobs.engine.merge.physical_plan import PlanLimits
from spark_jobs.engine.runtime.arrow_batches import measured_batches
from spark_jobs.engine.runtime.back_off import ATTEMPTS, back_off
from spark_jobs.engine.runtime.failures import translated
from spark_jobs.engine.runtime.operations import OperationLog, require_same_work
from spark_jobs.engine.runtime.surroundings import require_utf8_names
from spark_jobs.errors import CommitError, ErrorCode, JobError
from spark_jobs.spi.tables import CommittedSnapshot, TableHandle

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


# The maximum number of changed partitions that a result names.
_NAMED_PARTITIONS: Final = 100


@dataclass(frozen=True, slots=True)
class Job(RequestJob):
    """A request that changes rows, on an open catalog.

    ``limits`` affect how a merge is planned, never what it does.
    """

    statements: ClassVar[tuple[type, ...]] = get_args(RowStatement | PartitionStatement)
    without_session: ClassVar[tuple[type, ...]] = get_args(ClearingStatement)

    limits: PlanLimits = field(default_factory=PlanLimits)

    def check(self) -> JobResult:
        """Check the statement against the schemas without running it; a failure is a result too.

        A statement that an earlier try committed is not checked again.
        """
        result = self._result_of(self._checked)
        if result.error is not None and not self.request.dry_run:
            self.log.store(result)
        return result

    def _checked(self) -> JobResult:
        require_utf8_names(self.spark)
        if self.before_the_drop() is not None:
            return self._result("unchanged", Metrics())
        new = self._new_target()
        if new is not None:
            # An earlier try may have created the table, and inserted the rows.
            ended = EndedTries.of(self.request, self.connector)
            new.check(ended.operation_ids)
            return self._result("unchanged", Metrics())
        table = self.connector.metadata.load_table(self.request.table)
        if not self.request.dry_run and self._earlier(self.log, table) is not None:
            return self._result("unchanged", Metrics())
        require_plain_texts(self.spark, self.request)
        scratch = new_scratch_folder(self.request.operation_id, self.request.origin.try_number)
        with self._runs().opened(table, scratch) as run:
            run.check()
        return self._result("unchanged", Metrics())

    def done(self) -> JobResult:
        """Run the statement, again after a conflict, unless an earlier try has committed it."""
        log, runs, approval = self.log, self._runs(), Approval.of(self.request)
        for attempt in range(1, ATTEMPTS):
            self.progress.attempts = attempt
            try:
                return self._attempted_with_any_rows(log, runs, attempt, approval)
            except CommitError as error:
                if error.code is not ErrorCode.COMMIT_CONFLICT:
                    raise
                if approval is not None:
                    return self._committed_meanwhile(log, approval, error)
                self.progress.warn(f"conflict in attempt {attempt} of {ATTEMPTS}: {error.message}")
            back_off(attempt)
        self.progress.attempts = ATTEMPTS
        return self._attempted_with_any_rows(log, runs, ATTEMPTS, approval)

    def _attempted_with_any_rows(
        self, log: OperationLog, runs: StatementRuns, attempt: int, approval: Approval | None
    ) -> JobResult:
        """An attempt; where rows turn out to be long, another in batches that Spark measures."""
        try:
            return self._attempted(log, runs, attempt, approval)
        except (PySparkException, Py4JError) as error:
            failure = translated(error)
            if failure.code is not ErrorCode.ROWS_TOO_LONG:
                raise
            self.progress.say(f"{failure.message}: {failure.remedy}")
        with measured_batches(self.session):
            return self._attempted(log, runs, attempt, approval)

    def _runs(self) -> StatementRuns:
        return StatementRuns(
            self.request,
            self.spark,
            self.connector,
            self.progress,
            self.answers,
            self.limits,
            self.access,
        )

    def _attempted(
        self, log: OperationLog, runs: StatementRuns, attempt: int, approval: Approval | None
    ) -> JobResult:
        """Run the statement on fresh snapshots, unless it has been committed already."""
        if not self._has_target(log):
            return self._result("unchanged", Metrics())
        with self.progress.phase("catalog"):
            table = self.connector.metadata.load_table(self.request.table)
        if self.request.dry_run:
            return self._tried(log, runs, table)
        with self.progress.phase("history"):
            fence = log.enter(self.request)
            earlier = self._earlier(log, table)
            if earlier is not None:
                require_same_work(self.request, earlier)
                self._settle(table, earlier)
                return earlier
            if self._side.was_alone():
                return self._result("unchanged", Metrics())
            ended = EndedTries.of(self.request, self.connector)
            commits = ended.commits(table)
            for each in commits:
                self._settle(table, each)
            taken = ended.taken(commits)
            if taken is not None:
                return taken
            if approval is not None:
                table = approval.pinned(self.connector.metadata, table)
            scratch = log.begin(self.request.operation_id, fence.try_number)
        try:
            result = self._changed(runs, table, scratch, attempt, ended.operation_ids, approval)
        finally:
            with self.progress.phase("clean"):
                log.end(scratch)
        return replace(result, warnings=warnings_of(commits))

    def _committed_meanwhile(
        self, log: OperationLog, approval: Approval, error: CommitError
    ) -> JobResult:
        """After a conflict of an approved run: what another try of the operation has committed.

        Raises:
            CommitError: APPROVAL_STALE: it was none of them.
        """
        table = self.connector.metadata.load_table(self.request.table)
        earlier = self._earlier(log, table)
        if earlier is not None:
            require_same_work(self.request, earlier)
            self._settle(table, earlier)
            return earlier
        ended = EndedTries.of(self.request, self.connector)
        taken = ended.taken(ended.commits(table))
        if taken is None:
            raise approval.conflict(error) from None
        return taken

    def _has_target(self, log: OperationLog) -> bool:
        """Create the target of a statement that does; False: there is one, which is kept."""
        new = self._new_target()
        if new is None:
            return True
        with self.progress.phase("create"):
            log.enter(self.request)
            ended = EndedTries.of(self.request, self.connector).operation_ids
            if not new.is_wanted(ended):
                return False
            log.note_running(self.request.operation_id)
            new.create()
        return True

    def _new_target(self) -> NewTarget | None:
        statement = self.request.statement
        if not isinstance(statement, InsertStatement) or statement.new_table is None:
            return None
        return NewTarget(
            self.request,
            statement,
            statement.new_table,
            self.session,
            self.connector,
            self.progress,
            self.access,
        )

    def _tried(self, log: OperationLog, runs: StatementRuns, table: TableHandle) -> JobResult:
        """A dry run: it ignores earlier ones and leaves nothing behind."""
        scratch = dry_run_folder(self.request.operation_id)
        log.clear(scratch)
        log.lease(scratch).take()
        try:
            return self._changed(runs, table, scratch, 1)
        finally:
            log.end(scratch)

    def release(self, result: JobResult) -> None:
        """Release the guard: with a stored result, no retry searches from the base snapshot."""
        # Also when nothing changed: an earlier try that was killed may have left a guard.
        if result.error is not None:
            return
        try:
            table = self.connector.metadata.load_table(self.request.table)
            for name in mark_names(self.request):
                Marks(self.connector, table).settle(name)
            self.connector.writes.release_guard(table, self.request.operation_id)
        except (OSError, JobError) as error:
            # The statement is done; the next one on the table removes guards that are too old.
            self.progress.say(f"the guard of the base snapshot is left: {error}")
        if result.side_outputs:
            self._clear_side_rows(result)

    def _earlier(self, log: OperationLog, table: TableHandle) -> JobResult | None:
        """The result of an earlier try of this operation that succeeded."""
        stored = log.read(self.request.operation_id)
        if stored is not None and stored.error is None and self._is_in_history(stored, table):
            return stored
        commit = self.connector.writes.find_commit(table, self.request.operation_id)
        return None if commit is None else self._recorded(commit)

    def _is_in_history(self, stored: JobResult, table: TableHandle) -> bool:
        """Whether the table still has the snapshot of a result; True if it has expired.

        The table is the memory, the result only what it says of it: after a rollback, its work is
        not in the table any more.
        """
        snapshot_id = stored.new_snapshot_id
        if snapshot_id is None:
            return True
        try:
            commit = self.connector.writes.recall(table, snapshot_id)
        except CommitError as error:
            self.progress.say(f"{error.message} Its stored result is believed.")
            return True
        if commit is not None and self._recorded(commit).request_digest == stored.request_digest:
            return True
        self.progress.say(
            f"the stored result names snapshot {snapshot_id}, which is not in the table's history: "
            "it was rolled back, or the result is of another table"
        )
        return False

    def _recorded(self, commit: CommittedSnapshot) -> JobResult:
        target = str(self.request.table)
        return result_of_snapshot(target, commit.snapshot_id, commit.properties)

    def _changed(
        self,
        runs: StatementRuns,
        table: TableHandle,
        scratch: str,
        attempt: int,
        ended: Sequence[str] = (),
        approval: Approval | None = None,
    ) -> JobResult:
        require_utf8_names(self.spark)
        require_plain_texts(self.spark, self.request)
        side_folder = new_side_folder(self.request.operation_id, catalog_mark(self.request.catalog))
        with (
            self._not_left_behind(side_folder),
            runs.opened(table, scratch, attempt, ended, side_folder) as run,
        ):
            if approval is not None:
                approval.require_same_inputs(run.evidence(), run.table)
            outcome = run.run()
            is_dry, is_done = self.request.dry_run, outcome.snapshot_id is not None
            if approval is not None and not is_done:
                approval.require_latest(table, self.connector.metadata.load_table(table.name))
            if not is_dry and not is_done:
                run.store_schema()
            ticket = None
            if is_dry and outcome.plan is None:
                ticket = ticket_of(self.request, table, run, outcome.metrics)
        status: Status = "committed" if is_done else "unchanged"
        if is_dry:
            status = "dry_run" if outcome.plan is None else "planned"
        result = replace(
            self._result(status, outcome.metrics),
            base_snapshot_id=table.snapshot_id,
            new_snapshot_id=outcome.snapshot_id,
            partitions=outcome.partitions[:_NAMED_PARTITIONS],
            partition_metrics=outcome.by_partition[:_NAMED_PARTITIONS],
            schema_changes=tuple(map(str, run.table.schema_changes)),
            ticket=ticket,
            plan=outcome.plan,
            row_preview=run.preview is not None,
        )
        return self._with_side_rows(result, outcome.side)

    def _with_side_rows(self, result: JobResult, alone: tuple[SideOutput, ...]) -> JobResult:
        """``result`` of a run, when other tables have what it left for them.

        ``alone``: what no snapshot names.
        """
        snapshot_id, guards = result.new_snapshot_id, self.request.guards
        if guards is None or not guards.side_tables:
            return result
        if snapshot_id is None:
            self._side.publish_alone(alone)
            return replace(result, side_outputs=alone)
        commit = self._published(
            self.connector.metadata.load_table(self.request.table), snapshot_id
        )
        self._side.publish(self.request.operation_id, result.target, commit)
        return replace(result, side_outputs=recorded_side_outputs(commit.properties))

    def _settle(self, table: TableHandle, earlier: JobResult) -> None:
        """Insert what an earlier operation of the task left for other tables, if that is missing.

        An operation whose success is stored has done so.
        """
        if not earlier.side_outputs or earlier.new_snapshot_id is None:
            return
        stored = self.log.read(earlier.operation_id)
        if stored is not None and stored.error is None:
            return
        commit = self._published(table, earlier.new_snapshot_id)
        self._side.publish(earlier.operation_id, earlier.target, commit)
        if earlier.operation_id != self.request.operation_id:
            self.log.store(earlier)
            self._clear_side_rows(earlier)

    def _published(self, table: TableHandle, snapshot_id: int) -> CommittedSnapshot:
        commit = self.connector.writes.recall(table, snapshot_id)
        if commit is None:
            raise CommitError(
                ErrorCode.COMMIT_HISTORY_EXPIRED,
                f"Snapshot {snapshot_id} of {table.name} was rolled back before other tables had "
                "what it left for them.",
                "Clear the task to do the work again.",
            )
        return commit

    @property
    def _side(self) -> SideJob:
        return SideJob(self.request, self.spark, self.connector, self.progress)

    def _clear_side_rows(self, result: JobResult) -> None:
        try:
            self._side.clear(result.operation_id, result.side_outputs)
        except (OSError, JobError) as error:
            self.progress.say(f"rows that were kept for other tables are left: {error}")

    @contextmanager
    def _not_left_behind(self, side_folder: str) -> Iterator[None]:
        """A block that certainly publishes nothing leaves no rows for other tables."""
        try:
            yield
        except JobError as error:
            guards = self.request.guards
            is_known = error.code is not ErrorCode.COMMIT_OUTCOME_UNKNOWN
            if is_known and guards is not None and guards.side_tables:
                with suppress(OSError):
                    remove_side_folder(self.connector.storage, side_folder)
            raise

    def _result(self, status: Status, metrics: Metrics) -> JobResult:
        timed = replace(metrics, seconds=self.progress.seconds)
        return OperationLog.ended(self.request, status, timed)
