"""The run of a statement whose incremental sources have nothing new."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spark_jobs.contract.approval import SourceEvidence
from spark_jobs.contract.result import Metrics, PlanReport
from spark_jobs.engine.source.evidence import of_changes, of_files
from spark_jobs.engine.write.guarding import NO_CHECKS
from spark_jobs.engine.write.statement_run import SparkRun, StatementOutcome, with_publication
from spark_jobs.errors import JobError
from spark_jobs.spi.writes import MergeWrite


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleRun(SparkRun[Any]):
    """An attempt that changes no row: it publishes an empty snapshot if a mark moves, or nothing.

    A mark moves without rows where a first run finds out what counts as applied.
    """

    def evidence(self) -> Mapping[str, SourceEvidence]:
        """What the incremental sources are: no files, no changes."""
        files = {name: of_files(files) for name, files in self.sources.chosen.items()}
        changes = {name: of_changes(each) for name, each in self.sources.changes.items()}
        return {**files, **changes}

    def check(self) -> None:
        """Check what can be checked without columns: that the table may be written."""
        self.connector.metadata.require_writable(self.table)

    def run(self) -> StatementOutcome:
        """Move the marks."""
        self.check()
        self.progress.say("the incremental sources have nothing new")
        planned = self.planned_files()
        metrics = Metrics(
            files_total=len(planned), attempts=self.attempt, sources=self.sources.metrics
        )
        guarding = self.guarding(planned)
        metrics = guarding.before_publishing(guarding.before_writing(metrics, ()), NO_CHECKS)
        if self.plan_only:
            return StatementOutcome(None, metrics, plan=PlanReport())
        if self.dry_run or self.publishes_nothing:
            return StatementOutcome(None, metrics)
        write = MergeWrite(
            operation=self.operation,
            files=(),
            assigned_columns=(),
            on_columns=(),
            target_file_size=self.options.target_file_size,
            read_set=lambda _files: (),
        )
        handle = self.begin(write)
        with self.progress.phase("commit"):
            try:
                snapshot = self.publish(self.table, handle, (), metrics)
            except JobError as error:
                self.abort_unpublished(handle, error)
                raise
        return StatementOutcome(snapshot.snapshot_id, with_publication(metrics, snapshot))
