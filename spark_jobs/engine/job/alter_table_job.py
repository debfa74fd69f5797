"""ALTER TABLE from start to end; it has no rows and no snapshot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, cast

from spark_jobs.contract.alter_table import AlterTableSpec
from spark_jobs.contract.result import JobResult, Metrics, Status
from spark_jobs.engine.job.noted_job import NotedJob
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.errors import NotSupportedError


@dataclass(frozen=True, slots=True)
class AlterTableJob(NotedJob):
    """A request to alter a table of an open catalog; a retry finds what was done by its note."""

    statements: ClassVar[tuple[type, ...]] = (AlterTableSpec,)
    without_session: ClassVar[tuple[type, ...]] = statements

    def done(self) -> JobResult:
        """Alter the table, unless an earlier try has."""
        request, alterations = self.request, self.connector.alterations
        if (earlier := self.log.earlier(request)) is not None:
            return earlier
        if alterations is None:
            raise NotSupportedError(
                f"alter_table: tables of {request.catalog.connector} are not altered here.",
                "Alter the table with the engine that made it.",
            )
        if not request.dry_run:
            self.fence.enter()
        spec = cast("AlterTableSpec", request.statement)
        with self.progress.phase("alter"):
            report = alterations.alter_table(
                request.table, spec, dry_run=request.dry_run, note=self.note
            )
        changed: Status = "committed" if report.changes else "unchanged"
        metrics = Metrics(seconds=self.progress.seconds)
        result = OperationLog.ended(request, "dry_run" if request.dry_run else changed, metrics)
        return replace(result, alteration=report)
