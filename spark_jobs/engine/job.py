"""One request from start to end: an earlier commit, the statement, the stored result."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from spark_jobs.contract.properties import operation_properties, result_of_snapshot
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import JobResult, Metrics, Status
from spark_jobs.contract.statements import (
    CreateTableSpec,
    DeleteSpec,
    MergeSpec,
    UpdateSpec,
)
from spark_jobs.engine.failures import translated
from spark_jobs.engine.merge import MergeRun
from spark_jobs.engine.operations import OperationLog, require_same_work
from spark_jobs.engine.progress import Progress
from spark_jobs.engine.session import fixed_settings, meaningful_settings
from spark_jobs.engine.source import close_sources, open_sources
from spark_jobs.spi.tables import CommittedSnapshot, TableHandle
from spark_jobs.spi.writes import Operation

if TYPE_CHECKING:
    from spark_jobs.spi.connector import Connector


@dataclass(frozen=True, slots=True)
class Job:
    """A request on an open catalog and session."""

    request: JobRequest
    spark: SparkSession
    connector: Connector
    progress: Progress = field(default_factory=Progress)

    def run(self) -> JobResult:
        """Run the request and store its result; a failure is a result too."""
        log = OperationLog(self.connector.storage)
        settings = meaningful_settings(self.request.options.session_time_zone)
        try:
            with fixed_settings(self.spark, settings):
                result = replace(self._done(log), settings=settings)
        except Exception as error:  # noqa: BLE001 - a failure of any kind becomes a stored result
            result = OperationLog.failed(self.request, translated(error))
        log.store(result)
        self._release_guard(result)
        return result

    def _done(self, log: OperationLog) -> JobResult:
        statement = self.request.statement
        if isinstance(statement, CreateTableSpec):
            return self._create_table(statement)
        table = self.connector.metadata.load_table(self.request.target)
        log.clear_leftovers(self.request.operation_id)
        earlier = self._earlier(log, table)
        if earlier is not None:
            require_same_work(self.request, earlier)
            return earlier
        scratch = log.new_scratch(self.request.operation_id)
        try:
            return self._changed(statement, table, scratch)
        finally:
            log.clear(scratch)

    def _release_guard(self, result: JobResult) -> None:
        """Once the result is stored, no retry will search from the base snapshot any more."""
        changes_rows = not isinstance(self.request.statement, CreateTableSpec)
        if result.status == "committed" and changes_rows:
            table = self.connector.metadata.load_table(self.request.target)
            self.connector.writes.release_guard(table, self.request.operation_id)

    def _earlier(self, log: OperationLog, table: TableHandle) -> JobResult | None:
        """The result of a try of this operation that ended well."""
        stored = log.read(self.request.operation_id)
        if stored is not None and stored.error is None:
            return stored
        commit = self.connector.writes.find_commit(table, self.request.operation_id)
        return None if commit is None else self._recorded(commit)

    def _recorded(self, commit: CommittedSnapshot) -> JobResult:
        target = str(self.request.target)
        return result_of_snapshot(target, commit.snapshot_id, commit.properties)

    def _operation(self, table: TableHandle) -> Operation:
        properties = operation_properties(self.request, table.snapshot_id)
        return Operation(self.request.operation_id, self.request.digest(), properties)

    def _create_table(self, spec: CreateTableSpec) -> JobResult:
        with self.progress.phase("create"):
            created = self.connector.metadata.create_table(self.request.target, spec)
        self.progress.say(f"{self.request.target} {'created' if created else 'exists'}")
        return self._result("committed" if created else "unchanged", Metrics())

    def _changed(
        self, spec: MergeSpec | DeleteSpec | UpdateSpec, table: TableHandle, scratch: str
    ) -> JobResult:
        sources = self.request.sources
        try:
            frames = open_sources(self.spark, sources, self.connector, table)
            outcome = MergeRun(
                spark=self.spark,
                connector=self.connector,
                table=table,
                spec=spec,
                sources=frames,
                operation=self._operation(table),
                options=self.request.options,
                scratch=scratch,
                progress=self.progress,
            ).run()
        finally:
            close_sources(self.spark, sources)
        result = self._result(
            "unchanged" if outcome.snapshot_id is None else "committed", outcome.metrics
        )
        return replace(
            result, base_snapshot_id=table.snapshot_id, new_snapshot_id=outcome.snapshot_id
        )

    def _result(self, status: Status, metrics: Metrics) -> JobResult:
        return JobResult(
            operation_id=self.request.operation_id,
            status=status,
            target=str(self.request.target),
            request_digest=self.request.digest(),
            metrics=replace(metrics, seconds=self.progress.seconds),
            try_number=self.request.origin.try_number,
            retries=self.request.origin.retries,
        )
