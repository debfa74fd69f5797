"""DROP TABLE from start to end; a retry drops no table that others made since."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, cast

from spark_jobs.contract.drop_table import DropTableSpec
from spark_jobs.contract.result import JobResult, Metrics, Status
from spark_jobs.engine.job.noted_job import NotedJob
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.errors import NotSupportedError


@dataclass(frozen=True, slots=True)
class DropTableJob(NotedJob):
    """A request to drop a table of an open catalog."""

    statements: ClassVar[tuple[type, ...]] = (DropTableSpec,)
    without_session: ClassVar[tuple[type, ...]] = statements

    def done(self) -> JobResult:
        """Drop the table, unless an earlier try has."""
        request, alterations = self.request, self.connector.alterations
        if (earlier := self.log.earlier(request)) is not None:
            return earlier
        if alterations is None:
            raise NotSupportedError(
                f"drop_table: tables of {request.catalog.connector} are not dropped here.",
                "Drop the table with the engine that made it.",
            )
        self.fence.enter()
        spec = cast("DropTableSpec", request.statement)
        with self.progress.phase("drop"):
            dropped = alterations.drop_table(request.table, spec, note=self.note)
        self.progress.say(f"{request.table} {'dropped' if dropped else 'does not exist'}")
        metrics = Metrics(seconds=self.progress.seconds)
        status: Status = "committed" if dropped else "unchanged"
        return replace(OperationLog.ended(request, status, metrics), dropped=dropped)
