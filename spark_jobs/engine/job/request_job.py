"""What all jobs do around their work: errors become results, and results are stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql import SparkSession

from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import JobResult, Metrics
from spark_jobs.engine.runtime.failures import translated
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.engine.runtime.progress import Progress
from spark_jobs.engine.runtime.redaction import Redaction
from spark_jobs.engine.runtime.session import fixed_meaning
from spark_jobs.engine.runtime.watch import Watched, watching
from spark_jobs.engine.source.source_access import SourceAccess

if TYPE_CHECKING:
    from spark_jobs.spi.connector import Connector


@dataclass(frozen=True, slots=True)
class RequestJob(ABC):
    """A request on an open catalog.

    ``statements``: the kinds of statement that it runs; ``without_session``: those of them for
    which ``spark`` may be None. ``answers`` is as in ``LastLook``. ``dropped_by`` is a later
    request of the same batch that drops the table. ``access`` is that of its sources.
    """

    statements: ClassVar[tuple[type, ...]]
    without_session: ClassVar[tuple[type, ...]] = ()

    request: JobRequest
    spark: SparkSession | None
    connector: Connector
    progress: Progress = field(default_factory=Progress)
    redaction: Redaction = field(default_factory=Redaction)
    answers: Path | None = None
    dropped_by: JobRequest | None = None
    access: SourceAccess = field(default_factory=SourceAccess)

    @property
    def log(self) -> OperationLog:
        """The results of operations in the workspace."""
        return OperationLog(self.connector.storage)

    @property
    def session(self) -> SparkSession:
        """The session of a job that has one: ``spark_jobs.run`` sees to that."""
        assert self.spark is not None  # noqa: S101
        return self.spark

    def run(self) -> JobResult:
        """Run the request and, except in a dry run, store its result; a failure is a result too."""
        with watching(self._watched):
            result = self._result_of(lambda: self.before_the_drop() or self.done())
        if not self.request.dry_run:
            self.log.store(result)
            self.release(result)
        return result

    @abstractmethod
    def done(self) -> JobResult:
        """Do the work, unless an earlier try has done it.

        Raises:
            JobError: it failed.
        """

    def before_the_drop(self) -> JobResult | None:
        """The result of an earlier try, if one has dropped the table since: it is not made again.

        Raises:
            CommitError: OPERATION_ID_REUSED.
        """
        drop = self.dropped_by
        if drop is None or self.log.earlier(drop) is None:
            return None
        return self.log.earlier(self.request)

    def release(self, result: JobResult) -> None:
        """Give up what only a later try would need, once the result is stored."""
        return

    @property
    def _watched(self) -> Watched:
        """What is told of this job while it runs; a query, and a dry run, leave no note."""
        has_note = self.request.target is not None and not self.request.dry_run
        storage = self.connector.storage if has_note else None
        return Watched(self.request, self.progress, self.spark, storage)

    def _result_of(self, work: Callable[[], JobResult]) -> JobResult:
        zone = self.request.options.session_time_zone
        try:
            with fixed_meaning(self.spark, zone) as settings:
                result = replace(work(), settings=settings)
        except Exception as error:  # noqa: BLE001 - a failure of any kind becomes a result
            metrics = Metrics(attempts=self.progress.attempts, seconds=self.progress.seconds)
            failure = self.redaction.error(translated(error))
            result = OperationLog.failed(self.request, failure, metrics)
        # That of an earlier try tells its own.
        is_own = result.try_number == self.request.origin.try_number
        return replace(result, phases=tuple(self.progress.timed)) if is_own else result
