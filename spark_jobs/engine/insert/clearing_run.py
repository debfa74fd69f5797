"""TRUNCATE and DROP PARTITION from the statement to one snapshot; no row is read."""

from __future__ import annotations

from dataclasses import dataclass

from spark_jobs.contract.inserts import ClearingStatement, DropPartitionsSpec
from spark_jobs.contract.result import Metrics
from spark_jobs.engine.analysis.partition_specs import PartitionSpecs
from spark_jobs.engine.insert.overwrite_commit import OverwriteCommit, begin_overwrite
from spark_jobs.engine.insert.replacement import Replacement
from spark_jobs.engine.write.statement_run import StatementOutcome, StatementRun


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearingRun(StatementRun[ClearingStatement]):
    """One attempt of TRUNCATE or DROP PARTITION."""

    specs: PartitionSpecs

    def check(self) -> None:
        """Check the statement against the table.

        Raises:
            JobError: the statement does not fit.
        """
        self._replacement()

    def run(self) -> StatementOutcome:
        """Run the statement.

        Raises:
            JobError: whatever is wrong; the table is unchanged, except perhaps after
                COMMIT_OUTCOME_UNKNOWN.
        """
        with self.progress.phase("analyze"):
            replacement = self._replacement()
        planned = self.planned_files()
        if isinstance(self.spec, DropPartitionsSpec) and not self.spec.if_exists:
            replacement.require_found(planned)
        replaced = replacement.replaced(planned, ())
        self.progress.say(f"{len(replaced)} of {len(planned)} files to remove")
        metrics = Metrics(files_total=len(planned), attempts=self.attempt)
        if not replaced:
            return StatementOutcome(None, metrics)
        handle = begin_overwrite(self, replacement, ())
        return OverwriteCommit(self, handle, replacement, (), (), metrics).outcome(replaced)

    def _replacement(self) -> Replacement:
        self.connector.metadata.require_writable(self.table)
        return Replacement.of(self.spec, self.table, self.specs)
