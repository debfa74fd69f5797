"""TRUNCATE and DROP PARTITION from the statement to one snapshot.

No row is read, except of files that may hold rows of other partitions, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_jobs.contract.inserts import ClearingStatement
from spark_jobs.contract.result import Metrics
from spark_jobs.engine.analysis.partition_specs import PartitionSpecs
from spark_jobs.engine.changes.changed_rows import ChangeShape, Unpublished
from spark_jobs.engine.changes.row_checking import RowChecking
from spark_jobs.engine.insert.overwrite_commit import OverwriteCommit, begin_overwrite
from spark_jobs.engine.insert.replacement import Replacement, rows_replaced
from spark_jobs.engine.runtime.query_status import wait_for_stragglers
from spark_jobs.engine.write.statement_run import StatementOutcome, StatementRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearingRun(StatementRun[ClearingStatement]):
    """One attempt of TRUNCATE or DROP PARTITION; ``spark`` is None if the job has no session."""

    specs: PartitionSpecs
    spark: SparkSession | None

    def check(self) -> None:
        """Check the statement against the table."""
        self._replacement()
        self._checking()

    def run(self) -> StatementOutcome:
        """Run the statement."""
        with self.progress.phase("analyze"):
            replacement = self._replacement()
            checking = self._checking()
        planned = self.planned_files()
        replaced = replacement.replaced(planned, ())
        if replacement.all_found:
            replacement.require_found(replaced)
        self.progress.say(f"{len(replaced.all)} of {len(planned)} files to remove")
        metrics = Metrics(
            files_total=len(planned), files_scanned=len(replaced.partial), attempts=self.attempt
        )
        if self.plan_only:
            return StatementOutcome(None, metrics, plan=replaced.plan(0))
        guarding = self.guarding(planned)
        if not replaced.all:
            checks = checking.found(Unpublished(self.table, planned))
            return StatementOutcome(None, guarding.before_publishing(metrics, checks))
        reads_all = checking.reads.target
        handle = begin_overwrite(self, replacement, (), replaced, reads_all=reads_all)
        with self.writing(handle):
            gone = replacement.partitions(())
            with self.progress.phase("write"):
                recording = checking.recording()
                partial = replaced.partial
                deleted = rows_replaced(self, self.spark, handle, gone, partial, recording)
            if replacement.all_found:
                found = {number for each in deleted for number in each.specs}
                replacement.require_found(replaced, found)
        reports = [each.report for each in deleted]
        commit = OverwriteCommit(self, handle, replacement, (), reports, metrics, checking)
        return commit.outcome(guarding, replaced)

    def wait_for_tasks(self) -> None:
        """Wait for tasks that go on after a failure."""
        if self.spark is not None:
            wait_for_stragglers(self.spark)

    def _checking(self) -> RowChecking:
        return RowChecking.of(self, self.spark, ChangeShape(self.table), {})

    def _replacement(self) -> Replacement:
        self.connector.metadata.require_writable(self.table)
        return Replacement.of(self.spec, self.table, self.specs)
