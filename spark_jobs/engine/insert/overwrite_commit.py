"""The write of a run that replaces partitions: it adds files, and removes those they replace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from spark_jobs.contract.inserts import PartitionStatement
from spark_jobs.contract.result import Metrics, PartitionMetrics
from spark_jobs.engine.changes.changed_rows import Unpublished
from spark_jobs.engine.changes.row_checking import RowChecking
from spark_jobs.engine.insert.partition_shares import Partition
from spark_jobs.engine.insert.replacement import ReplacedFiles, Replacement
from spark_jobs.engine.write.change_writer import TaskReport
from spark_jobs.engine.write.guarding import Guarding, row_count
from spark_jobs.engine.write.partition_counts import (
    changed_partitions,
    partition_changes,
    partition_metrics,
)
from spark_jobs.engine.write.statement_run import (
    StatementOutcome,
    StatementRun,
    counted,
    with_publication,
)
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.sinks import MergeHandle
from spark_jobs.spi.tables import PlannedFile
from spark_jobs.spi.writes import Fragment, InsertedKeys, MergeWrite

_LAST_WRITER_ATTEMPTS: Final = 20


@dataclass(frozen=True, slots=True)
class _Change:
    work: Unpublished
    fragments: Sequence[Fragment]
    metrics: Metrics
    partitions: tuple[str, ...]


def begin_overwrite(
    run: StatementRun[PartitionStatement],
    replacement: Replacement,
    partitions: Sequence[Partition],
    replaced: ReplacedFiles,
    *,
    reads_all: bool = False,
    scattered: bool = False,
) -> MergeHandle:
    """Begin a write of rows in ``partitions``, which changes ``replaced`` files.

    Under either isolation, what others add to the replaced partitions is a conflict. ``reads_all``:
    so is what they add anywhere. ``scattered`` is as in ``MergeWrite``: then ``partitions`` may be
    filled before the write is published.
    """

    def read_set(files: Sequence[PlannedFile]) -> Sequence[PlannedFile]:
        return files if reads_all else replacement.replaced(files, partitions).all

    write = MergeWrite(
        operation=run.operation,
        files=replaced.partial,
        assigned_columns=(),
        on_columns=(),
        target_file_size=run.options.target_file_size,
        rewrite_share=run.options.rewrite_share,
        read_set=read_set,
        overwrites=not replacement.appends,
        inserted_keys=InsertedKeys.UPSERTED if replacement.appends else InsertedKeys.NEW,
        dry_run=run.dry_run,
        scattered=scattered,
    )
    return run.begin(write)


@dataclass(frozen=True, slots=True)
class OverwriteCommit:
    """Commits the ``reports`` of the tasks that wrote ``partitions``, or deleted rows, in a run.

    ``checking``: what is checked before.
    """

    run: StatementRun[PartitionStatement]
    handle: MergeHandle
    replacement: Replacement
    partitions: Sequence[Partition]
    reports: Sequence[TaskReport]
    metrics: Metrics
    checking: RowChecking

    def outcome(self, guarding: Guarding, replaced: ReplacedFiles) -> StatementOutcome:
        """Commit the snapshot, unless nothing changes; in a dry run, what that would do.

        ``guarding``: the guards on the table that was read. If the last writer wins, a conflict
        leads to another attempt, which replaces what is in the partitions by then.

        Raises:
            CommitError: COMMIT_CONFLICT, COMMIT_OUTCOME_UNKNOWN or RUN_GIVEN_UP.
            DataError: GUARD_FAILED; PARTITION_NOT_EXPECTED, for what is there after a conflict.
        """
        if self.run.dry_run:
            change = self._change(guarding, replaced)
            by_partition = self._by_partition(self.run, change.work.reports, replaced)
            return StatementOutcome(None, change.metrics, change.partitions, by_partition)
        is_empty = not replaced.whole and not any(report.fragments for report in self.reports)
        if is_empty and self.run.publishes_nothing:
            with self.run.cleaning_up():
                self.run.abort(self.handle)
            metrics = counted(self.metrics, self.reports)
            work = Unpublished(guarding.table, guarding.planned, reports=self.reports)
            metrics = guarding.before_publishing(metrics, self.checking.found(work))
            return StatementOutcome(None, metrics, side=self.checking.late)
        with self.run.progress.phase("commit"):
            try:
                return self._published(guarding, replaced)
            except JobError as error:
                self.run.abort_unpublished(self.handle, error)
                raise

    def _published(self, guarding: Guarding, replaced: ReplacedFiles) -> StatementOutcome:
        # What has been read of a file holds for that file only: then the statement runs again.
        # What was approved did not see what the last writer would replace.
        wins = getattr(self.run.spec, "last_writer_wins", False) and not replaced.partial
        wins = wins and self.run.approved is None
        for _ in range(_LAST_WRITER_ATTEMPTS - 1 if wins else 0):
            try:
                return self._attempted(guarding, replaced)
            except JobError as error:
                if error.code is not ErrorCode.COMMIT_CONFLICT:
                    raise
                guarding, replaced = self._now(error)
        return self._attempted(guarding, replaced)

    def _change(self, guarding: Guarding, replaced: ReplacedFiles) -> _Change:
        """What changes when the whole files of ``replaced`` are removed from the table.

        Raises:
            DataError: GUARD_FAILED.
        """
        connector, table = self.run.connector, guarding.table
        dropped = TaskReport(
            deleted=row_count(connector.scan, table, replaced.whole),
            fragments=connector.writes.drop_files(table, self.handle, replaced.whole),
        )
        reports = [*self.reports, dropped]
        fragments = tuple(each for report in reports for each in report.fragments)
        partitions = changed_partitions(connector, table, fragments)
        metrics = replace(counted(self.metrics, reports), partitions_changed=len(partitions))
        run = replace(self.run, table=table)
        by_partition = self._by_partition(run, reports, replaced)
        changes = partition_changes(run, self.handle, metrics, by_partition, guarding.planned)
        work = Unpublished(table, guarding.planned, replaced.whole, reports)
        metrics = guarding.before_publishing(metrics, self.checking.found(work), changes)
        return _Change(work, fragments, metrics, partitions)

    def _by_partition(
        self,
        run: StatementRun[PartitionStatement],
        reports: Sequence[TaskReport],
        replaced: ReplacedFiles,
    ) -> tuple[PartitionMetrics, ...]:
        if not run.counts_by_partition:
            return ()
        return partition_metrics(run, self.handle, reports, replaced.partial, replaced.whole)

    def _attempted(self, guarding: Guarding, replaced: ReplacedFiles) -> StatementOutcome:
        with self.run.writing(self.handle):
            change = self._change(guarding, replaced)
            side = self.checking.kept(change.work)
        snapshot = self.run.publish(
            guarding.table, self.handle, change.fragments, change.metrics, side
        )
        metrics = with_publication(change.metrics, snapshot)
        return StatementOutcome(snapshot.snapshot_id, metrics, change.partitions)

    def _now(self, conflict: JobError) -> tuple[Guarding, ReplacedFiles]:
        """The guards on the table at its latest snapshot, and the files to replace.

        Raises GUARD_FAILED; ``conflict`` if another driver has committed this operation, columns
        changed, or rows have to be read.
        """
        connector = self.run.connector
        table = connector.metadata.load_table(self.run.table.name)
        done = connector.writes.find_commit(table, self.run.operation.operation_id)
        if done is not None or table.columns != self.run.table.columns:
            raise conflict
        planned = connector.metadata.plan_files(table)
        replaced = self.replacement.replaced(planned, self.partitions)
        if replaced.partial:
            raise conflict
        self.replacement.check(replaced, self.partitions)
        guarding = replace(self.run, table=table).guarding(planned)
        guarding.before_writing(self.metrics, replaced.all)
        return guarding, replaced
