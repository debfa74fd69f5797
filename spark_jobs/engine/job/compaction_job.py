"""A compaction from start to end: what earlier tries did, the rounds, the stored result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final, cast

from spark_jobs.contract.compaction import (
    CompactedPartition,
    CompactionReport,
    CompactSpec,
    require_named,
)
from spark_jobs.contract.partition_names import partition_name
from spark_jobs.contract.properties import operation_properties
from spark_jobs.contract.result import ErrorInfo, JobResult, Metrics, Status
from spark_jobs.engine.analysis.partition_specs import PartitionSpecs, SparkConstants
from spark_jobs.engine.analysis.statement_time import StatementTime
from spark_jobs.engine.analysis.text_rules import require_plain_texts
from spark_jobs.engine.compaction.compaction_run import CompactionRun, WantedPartitions
from spark_jobs.engine.compaction.group_run import GroupRuns
from spark_jobs.engine.compaction.tally import Tally, manifest_counts, report_of
from spark_jobs.engine.job.request_job import RequestJob
from spark_jobs.engine.runtime.collector import paused_collector
from spark_jobs.engine.runtime.lease import Lease
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.engine.runtime.permission import Fence, LastLook, Permission
from spark_jobs.engine.runtime.surroundings import require_utf8_names
from spark_jobs.errors import JobError, NotSupportedError, error_of
from spark_jobs.spi.compaction import CompactionPlan

if TYPE_CHECKING:
    from spark_jobs.spi.compaction import ConnectorCompaction
    from spark_jobs.spi.tables import TableHandle

# The most partitions that a result, and an error, name.
_NAMED: Final = 100
_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class CompactionJob(RequestJob):
    """A request to compact a table, on an open catalog.

    What a try that failed has compacted stays, and a later one goes on from there.
    """

    statements: ClassVar[tuple[type, ...]] = (CompactSpec,)

    @property
    def spec(self) -> CompactSpec:
        """The statement."""
        return cast("CompactSpec", self.request.statement)

    def done(self) -> JobResult:
        """Compact the table, unless an earlier try has."""
        log = self.log
        earlier = log.earlier(self.request)
        if earlier is not None:
            return earlier
        require_utf8_names(self.spark)
        require_plain_texts(self.spark, self.request)
        compaction = self.connector.compaction
        if compaction is None:
            raise NotSupportedError(
                f"{self.request.catalog.connector}: tables of this catalog cannot be compacted.",
                "Compact the table with the engine that made it.",
            )
        with self.progress.phase("catalog"):
            table = self.connector.metadata.load_table(self.request.table)
        wanted = self._wanted(table)
        if self.request.dry_run:
            return self._foretold(compaction, table, wanted)
        with self.progress.phase("history"):
            fence = log.enter(self.request)
            commits = compaction.commits(table, self.request.operation_id)
            tally = Tally.of(commits, [field.name for field in table.partitioned_by])
        scratch = log.begin(self.request.operation_id, fence.try_number)
        lease = log.lease(scratch)
        run = self._run(compaction, table, wanted, tally, lease, fence)
        try:
            if self.spec.manifests != "only":
                run.run(table)
            error = self._incomplete(tally)
            if self.spec.manifests != "keep" and error is None:
                run.rewrite_manifests(table)
        except JobError as failure:
            error = failure
        finally:
            with self.progress.phase("clean"):
                log.end(scratch)
        return self._result(table, tally, error, wanted)

    def _wanted(self, table: TableHandle) -> WantedPartitions:
        """The partitions that the statement names.

        Raises:
            AnalysisError, DataError, RequestError: a partition spec that does not fit the table.
        """
        require_named(self.spec.partitions, [field.name for field in table.partitioned_by])
        with self.progress.phase("analyze"):
            moment = StatementTime(self.session)
            specs = PartitionSpecs(table, SparkConstants(self.session, table, moment))
            named = enumerate(self.spec.partitions)
            return WantedPartitions(
                [specs.constants(each, f"partitions[{index}]") for index, each in named]
            )

    def _run(
        self,
        compaction: ConnectorCompaction,
        table: TableHandle,
        wanted: WantedPartitions,
        tally: Tally,
        lease: Lease,
        fence: Fence,
    ) -> CompactionRun:
        request = self.request
        last_look = LastLook(request.operation_id, self.answers)
        groups = GroupRuns(
            self.session,
            compaction,
            self.spec,
            request.operation_id,
            lease,
            Permission(last_look, fence, lease).require,
            self.progress,
        )
        common = operation_properties(request, table.snapshot_id)
        return CompactionRun(self.connector.metadata, groups, wanted, tally, common)

    def _foretold(
        self, compaction: ConnectorCompaction, table: TableHandle, wanted: WantedPartitions
    ) -> JobResult:
        """The result of a dry run, which only plans."""
        manifests, plan = None, CompactionPlan(())
        with self.progress.phase("plan"), paused_collector():
            if self.spec.manifests != "only":
                plan = compaction.plan(table, self.spec, wanted)
            if self.spec.manifests != "keep":
                manifests = compaction.planned_manifests(table)
        expected: dict[str, CompactedPartition] = {}
        for group in plan.groups:
            for key, each in group.expected.items():
                expected[key] = expected[key].plus(each) if key in expected else each
        report = report_of(
            list(expected.values()),
            expected.values(),
            partitions_compacted=len(expected),
            partitions_left=plan.partitions_left,
            **manifest_counts(manifests),
        )
        return replace(
            OperationLog.ended(self.request, "dry_run", Metrics(seconds=self.progress.seconds)),
            base_snapshot_id=table.snapshot_id,
            partitions=_names(report.partitions),
            compaction=report,
            warnings=_warnings(report, wanted),
        )

    def _result(
        self,
        table: TableHandle,
        tally: Tally,
        error: JobError | None,
        wanted: WantedPartitions,
    ) -> JobResult:
        report = tally.report()
        changed: Status = "committed" if report.snapshots else "unchanged"
        metrics = replace(tally.metrics, seconds=self.progress.seconds)
        return replace(
            OperationLog.ended(self.request, "failed" if error else changed, metrics),
            base_snapshot_id=table.snapshot_id,
            new_snapshot_id=report.snapshots[-1] if report.snapshots else None,
            error=ErrorInfo.of(self.redaction.error(error)) if error else None,
            partitions=_names(each for each in report.partitions if not each.error),
            compaction=report,
            warnings=_warnings(report, wanted),
        )

    def _incomplete(self, tally: Tally) -> JobError | None:
        """The error of a compaction that left partitions as they are; None: it left none.

        Its code is that of a failure after which a retry may go on, if there is one.
        """
        if not tally.failed:
            return None
        report = tally.report()
        retryable = [each for each in tally.errors if each.retryable]
        first = (retryable or tally.errors)[0]
        failed = [f"{_called(each)} ({each.error})" for each in report.partitions if each.error]
        compacted = [_called(each) for each in report.partitions if not each.error]
        message = (
            f"Not all of {self.request.table} could be compacted. Not compacted: "
            f"{_listed(failed, report.partitions_failed)}. Compacted: "
            f"{_listed(compacted, report.partitions_compacted)}."
        )
        return error_of(first.code, message, first.remedy)

    def release(self, result: JobResult) -> None:
        """Release the guard, unless a later try of the operation may look for what this one did."""
        compaction, origin = self.connector.compaction, self.request.origin
        may_go_on = result.error is not None and result.error.retryable
        if compaction is None or (may_go_on and origin.try_number <= origin.retries):
            return
        try:
            table = self.connector.metadata.load_table(self.request.table)
            compaction.end(table, self.request.operation_id)
        except Exception as error:  # noqa: BLE001 - the result is stored already
            self.progress.say(f"the guard of the table's history stays behind: {error}")


def _warnings(report: CompactionReport, wanted: WantedPartitions) -> tuple[str, ...]:
    warnings = wanted.warnings()
    if report.indexes_lost:
        warnings.append(
            f"{report.indexes_lost:,} files had file indexes or bloom filters, which their "
            "compacted files do not have: engines that use them read more"
        )
    return tuple(warnings)


def _names(partitions: Iterable[CompactedPartition]) -> tuple[str, ...]:
    """The names of the first partitions, sorted; none for a table without partitions."""
    names = [partition_name(each.values) for each in partitions if each.values]
    return tuple(sorted(names[:_NAMED]))


def _called(partition: CompactedPartition) -> str:
    return partition_name(partition.values) or "the whole table"


def _listed(names: list[str], count: int) -> str:
    if not names:
        return "none"
    more = count - len(names[:_SHOWN])
    return ", ".join(names[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
