"""CREATE TABLE from start to end; it has no rows and no snapshot."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import JobResult, Metrics
from spark_jobs.contract.statements import CreateTableSpec
from spark_jobs.engine.runtime.failures import translated
from spark_jobs.engine.runtime.fence import Fence
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.engine.runtime.progress import Progress
from spark_jobs.engine.runtime.redaction import Redaction

if TYPE_CHECKING:
    from spark_jobs.spi.connector import Connector


@dataclass(frozen=True, slots=True)
class CreateTableJob:
    """A request to create a table in an open catalog; a retry finds the table."""

    request: JobRequest
    spec: CreateTableSpec
    connector: Connector
    progress: Progress = field(default_factory=Progress)
    redaction: Redaction = field(default_factory=Redaction)

    def run(self) -> JobResult:
        """Create the table and store the result; a failure is a result too."""
        try:
            result = self._done()
        except Exception as error:  # noqa: BLE001 - a failure of any kind becomes a stored result
            result = OperationLog.failed(self.request, self.redaction.error(translated(error)))
        OperationLog(self.connector.storage).store(result)
        return result

    def _done(self) -> JobResult:
        Fence.of(self.request, self.connector.storage).enter()
        with self.progress.phase("create"):
            created = self.connector.metadata.create_table(self.request.table, self.spec)
        self.progress.say(f"{self.request.table} {'created' if created else 'exists'}")
        metrics = Metrics(seconds=self.progress.seconds)
        return OperationLog.ended(self.request, "committed" if created else "unchanged", metrics)
