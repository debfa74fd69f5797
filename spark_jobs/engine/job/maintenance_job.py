"""A maintenance statement from start to end; it has no rows and no snapshot of its own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from spark_jobs.contract.maintenance import (
    CreateTagSpec,
    DeleteTagSpec,
    ExpireSnapshotsSpec,
    MaintenanceReport,
    MaintenanceStatement,
    RemoveOrphanFilesSpec,
)
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import JobResult, Metrics, Status
from spark_jobs.engine.runtime.failures import translated
from spark_jobs.engine.runtime.fence import Fence
from spark_jobs.engine.runtime.leftovers import leftovers_of
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.engine.runtime.progress import Progress
from spark_jobs.engine.runtime.redaction import Redaction
from spark_jobs.engine.runtime.session import fixed_meaning
from spark_jobs.errors import NotSupportedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.spi.connector import Connector


@dataclass(frozen=True, slots=True)
class MaintenanceJob:
    """A request for maintenance on an open catalog; ``spark`` is None if the job has no session."""

    request: JobRequest
    statement: MaintenanceStatement
    connector: Connector
    spark: SparkSession | None = None
    progress: Progress = field(default_factory=Progress)
    redaction: Redaction = field(default_factory=Redaction)

    def run(self) -> JobResult:
        """Run the request and, except in a dry run, store its result; a failure is a result too."""
        log = OperationLog(self.connector.storage)
        try:
            result = log.earlier(self.request) or self._wanted_work()
        except Exception as error:  # noqa: BLE001 - a failure of any kind becomes a stored result
            result = OperationLog.failed(self.request, self.redaction.error(translated(error)))
        if not self.request.dry_run:
            log.store(result)
        return result

    def _wanted_work(self) -> JobResult:
        if not self.request.dry_run:
            self._fence.enter()
        return self._done()

    @property
    def _fence(self) -> Fence:
        return Fence.of(self.request, self.connector.storage)

    def _done(self) -> JobResult:
        zone = self.request.options.session_time_zone
        with self.progress.phase(self.statement.kind), fixed_meaning(self.spark, zone):
            report = self._report()
        changed: Status = "committed" if report.changes else "unchanged"
        status = "dry_run" if self.request.dry_run else changed
        metrics = Metrics(seconds=self.progress.seconds)
        return replace(OperationLog.ended(self.request, status, metrics), maintenance=report)

    def _report(self) -> MaintenanceReport:
        maintenance = self.connector.maintenance
        target, dry_run = self.request.table, self.request.dry_run
        if maintenance is None:
            raise NotSupportedError(
                f"{self.request.catalog.connector}: there is no table maintenance on this catalog.",
                "Use the engine that made the table, or what the catalog's server offers.",
            )
        match self.statement:
            case ExpireSnapshotsSpec() as spec:
                return maintenance.expire_snapshots(
                    target, spec, dry_run=dry_run, require_wanted=self._fence.require_none
                )
            case RemoveOrphanFilesSpec() as spec:
                report = maintenance.remove_orphan_files(
                    target,
                    spec,
                    dry_run=dry_run,
                    spark=self.spark,
                    require_wanted=self._fence.require_none,
                )
                return self._without_leftovers(spec, report)
            case CreateTagSpec() as spec:
                return maintenance.create_tag(target, spec)
            case DeleteTagSpec() as spec:
                return maintenance.delete_tag(target, spec, dry_run=dry_run)
            case spec:
                dag_id = self.request.origin.dag_id
                return maintenance.roll_back(target, spec, dag_id=dag_id, dry_run=dry_run)

    def _without_leftovers(
        self, spec: RemoveOrphanFilesSpec, report: MaintenanceReport
    ) -> MaintenanceReport:
        """Remove what killed jobs left in the workspace, for any table; a dry run only counts."""
        leftovers = leftovers_of(self.connector.storage, spec.older_than)
        if not self.request.dry_run:
            leftovers.remove()
        return leftovers.added_to(report)
