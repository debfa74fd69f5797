"""CREATE TABLE from start to end; it has no rows and no snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

from spark_jobs.contract.result import JobResult, Metrics
from spark_jobs.contract.statements import CreateTableSpec
from spark_jobs.engine.job.request_job import RequestJob
from spark_jobs.engine.runtime.fence import Fence
from spark_jobs.engine.runtime.operations import OperationLog


@dataclass(frozen=True, slots=True)
class CreateTableJob(RequestJob):
    """A request to create a table in an open catalog; a retry finds the table."""

    statements: ClassVar[tuple[type, ...]] = (CreateTableSpec,)
    without_session: ClassVar[tuple[type, ...]] = statements

    def done(self) -> JobResult:
        """Create the table, unless it exists."""
        Fence.of(self.request, self.connector.storage).enter()
        spec = cast("CreateTableSpec", self.request.statement)
        with self.progress.phase("create"):
            created = self.connector.metadata.create_table(self.request.table, spec)
        self.progress.say(f"{self.request.table} {'created' if created else 'exists'}")
        metrics = Metrics(seconds=self.progress.seconds)
        return OperationLog.ended(self.request, "committed" if created else "unchanged", metrics)
