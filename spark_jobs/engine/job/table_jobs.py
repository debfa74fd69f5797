"""CREATE, ALTER and DROP TABLE from start to end; they have no rows and no snapshot.

A retry drops no table that others made since.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, cast

from spark_jobs.contract.alter_table import AlterTableSpec
from spark_jobs.contract.drop_table import DropTableSpec
from spark_jobs.contract.result import JobResult, Metrics, Status
from spark_jobs.contract.statements import CreateTableSpec
from spark_jobs.engine.job.new_target import source_columns
from spark_jobs.engine.job.noted_job import NotedJob
from spark_jobs.engine.job.request_job import RequestJob
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.engine.runtime.permission import Fence
from spark_jobs.errors import CatalogError, ErrorCode, NotSupportedError, RequestError


@dataclass(frozen=True, slots=True)
class CreateTableJob(RequestJob):
    """A request to create a table in an open catalog; a retry finds it, even if it was altered."""

    statements: ClassVar[tuple[type, ...]] = (CreateTableSpec,)
    without_session: ClassVar[tuple[type, ...]] = statements

    def done(self) -> JobResult:
        """Create the table, unless it exists."""
        Fence.of(self.request, self.connector.storage).enter()
        spec = cast("CreateTableSpec", self.request.statement)
        if (spec.keep_existing or self._was_done()) and self._exists():
            return self._ended(created=False)
        if spec.source is not None:
            with self.progress.phase("analyze"):
                spec = self._like(spec, spec.source)
        with self.progress.phase("create"):
            created = self._created(spec)
        return self._ended(created=created)

    def _was_done(self) -> bool:
        """Whether an earlier try ended well: a statement behind it may have altered the table."""
        earlier_result = self.log.read(self.request.operation_id)
        if earlier_result is None or earlier_result.error is not None:
            return False
        return earlier_result.request_digest == self.request.digest()

    def _created(self, spec: CreateTableSpec) -> bool:
        try:
            return self.connector.metadata.create_table(self.request.table, spec)
        except CatalogError as error:
            # Another job may have created the table at the same time.
            if spec.keep_existing and error.code is ErrorCode.TABLE_DIFFERS:
                return False
            raise

    def _exists(self) -> bool:
        with self.progress.phase("catalog"):
            try:
                self.connector.metadata.load_table(self.request.table)
            except CatalogError as error:
                if error.code in (ErrorCode.TABLE_NOT_FOUND, ErrorCode.WAREHOUSE_NOT_FOUND):
                    return False
                raise
            except NotSupportedError as error:
                self.progress.say(f"it exists: {error.message}")
        return True

    def _ended(self, *, created: bool) -> JobResult:
        self.progress.say(f"{self.request.table} {'created' if created else 'exists'}")
        metrics = Metrics(seconds=self.progress.seconds)
        return OperationLog.ended(self.request, "committed" if created else "unchanged", metrics)

    def _like(self, spec: CreateTableSpec, source: str) -> CreateTableSpec:
        """The statement with the columns of a source, which may be NULL but for the key's."""
        if self.spark is None:
            problem, remedy = "needs a Spark session", "Start the job with one."
            raise RequestError(ErrorCode.REQUEST_INVALID, problem, remedy, ("source",))
        found = source_columns(
            self.request, self.spark, self.connector, self.progress, source, self.access
        )
        keys = {each.lower() for each in spec.primary_key}
        columns = (replace(each, nullable=each.name.lower() not in keys) for each in found)
        return replace(spec, columns=tuple(columns), source=None)


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
