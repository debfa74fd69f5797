"""What the runs of all statements that change rows have in common: inputs, outcome and end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from pyspark.sql import SparkSession

from spark_jobs.contract.approval import SourceEvidence, Ticket
from spark_jobs.contract.guards import Guards
from spark_jobs.contract.marks import mark_text
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.properties import metrics_property, recorded_metrics, sources_property
from spark_jobs.contract.result import Metrics, PartitionMetrics, PlanReport
from spark_jobs.contract.row_preview import PreviewPlace
from spark_jobs.contract.side_outputs import SideOutput, side_property
from spark_jobs.engine.analysis.partition_specs import PartitionSpecs, SparkConstants
from spark_jobs.engine.analysis.statement_time import StatementTime
from spark_jobs.engine.marks.marks import Marks, NewMark
from spark_jobs.engine.runtime.collector import paused_collector
from spark_jobs.engine.runtime.lease import Lease, LeasedSinks
from spark_jobs.engine.runtime.permission import Fence, LastLook, Permission
from spark_jobs.engine.runtime.progress import Progress
from spark_jobs.engine.runtime.query_status import wait_for_stragglers
from spark_jobs.engine.source.evidence import evidence_of
from spark_jobs.engine.source.pinned_tables import read_snapshots
from spark_jobs.engine.source.sources import Sources
from spark_jobs.engine.write.change_writer import TaskReport
from spark_jobs.engine.write.expected_partitions import ExpectedPartitions
from spark_jobs.engine.write.guarding import Guarding
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.sinks import MergeHandle
from spark_jobs.spi.tables import CommittedSnapshot, PlannedFile, TableHandle
from spark_jobs.spi.writes import Fragment, MergeWrite, Operation

if TYPE_CHECKING:
    from spark_jobs.spi.connector import Connector


Spec_co = TypeVar("Spec_co", covariant=True)


@dataclass(frozen=True, slots=True)
class StatementOutcome:
    """What a statement did, or would do; ``snapshot_id`` is None if nothing was committed.

    ``partitions`` are the names of the changed partitions; ``by_partition`` says what a dry run
    would change in each. ``plan``: what it would do at most, if it was only planned. ``side``: what
    it leaves for other tables without a snapshot that names it.
    """

    snapshot_id: int | None
    metrics: Metrics
    partitions: tuple[str, ...] = ()
    by_partition: tuple[PartitionMetrics, ...] = ()
    plan: PlanReport | None = None
    side: tuple[SideOutput, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementRun(Generic[Spec_co]):
    """One attempt of one statement on a pinned table.

    ``scratch`` is the folder for this run's temporary files, relative to the workspace. ``attempt``
    counts from 1. ``dry_run``: the run ends before the commit and stores nothing. ``guards``: what
    must hold before it publishes. ``approved``: what the changes must be.
    ``plan_only``: a dry run ends with its plan. ``preview``: what a dry run keeps of changed rows.
    ``side_folder``, relative to the workspace, has what the statement leaves for other tables.

    Each kind of statement has a method ``check``, which reads no row, and a method ``run``. Both
    raise ``JobError`` for whatever is wrong; the table is unchanged then, except perhaps after
    COMMIT_OUTCOME_UNKNOWN.
    """

    connector: Connector
    table: TableHandle
    spec: Spec_co
    operation: Operation
    options: JobOptions
    scratch: str
    progress: Progress
    last_look: LastLook
    fence: Fence
    attempt: int = 1
    dry_run: bool = False
    guards: Guards = field(default_factory=Guards)
    approved: Ticket | None = None
    plan_only: bool = False
    side_folder: str = ""
    preview: PreviewPlace | None = None

    @property
    def counts_by_partition(self) -> bool:
        """Whether tasks count the rows that they change by partition."""
        return self.dry_run or self.guards.counts_by_partition

    def guarding(self, planned: Sequence[PlannedFile]) -> Guarding:
        """The guards of the statement on a table of the files ``planned``."""
        return Guarding(
            self.guards, self.table, self.connector.scan, planned, self.dry_run, self.approved
        )

    def evidence(self) -> Mapping[str, SourceEvidence]:
        """What the sources are; of a statement without sources, nothing."""
        return {}

    def read_tables(self) -> Mapping[str, Sequence[int]]:
        """The snapshots of the tables that sources read, by name; the base is none of them."""
        return {}

    def new_marks(self) -> Sequence[NewMark]:
        """The marks of incremental sources that the snapshot is to record."""
        return ()

    @property
    def publishes_nothing(self) -> bool:
        """Whether a statement that changes no row publishes no snapshot."""
        return not self.new_marks()

    @property
    def lease(self) -> Lease:
        """The lease of this run: its tasks may leave files only while the lease exists."""
        storage = self.connector.storage
        return Lease(storage.filesystem, f"{storage.root}/{self.scratch}")

    def planned_files(self) -> tuple[PlannedFile, ...]:
        """The table's files, in the phase ``plan``; raises as ``plan_files`` does."""
        with self.progress.phase("plan"), paused_collector():
            return self.connector.metadata.plan_files(self.table)

    def begin(self, write: MergeWrite) -> MergeHandle:
        """Begin a write that leaves no files and no snapshot if the run is given up."""
        wanted = replace(write, require_wanted=self._require_wanted)
        handle = self.connector.writes.begin_merge(self.table, wanted)
        return replace(handle, sinks=LeasedSinks(handle.sinks, self.lease))

    def _require_wanted(self) -> None:
        Permission(self.last_look, self.fence, self.lease).require()

    def store_schema(self) -> None:
        """Store the columns of an evolved table, where no snapshot does.

        Raises:
            CommitError: COMMIT_CONFLICT or RUN_GIVEN_UP.
            InternalError: STORAGE_UNAVAILABLE.
        """
        if self.table.schema_changes:
            self._require_wanted()
            self.connector.writes.store_schema(self.table)

    def publish(
        self,
        table: TableHandle,
        handle: MergeHandle,
        fragments: Sequence[Fragment],
        metrics: Metrics,
        side: Sequence[SideOutput] = (),
    ) -> CommittedSnapshot:
        """Commit the snapshot; ``table`` is as it was when ``fragments`` were made.

        ``side``: what is left for other tables, and kept already.

        Raises:
            CommitError: COMMIT_CONFLICT, COMMIT_OUTCOME_UNKNOWN or RUN_GIVEN_UP.
            InternalError: STORAGE_UNAVAILABLE (nothing was published).
        """
        timed = replace(metrics, seconds=self.progress.seconds)
        read = sources_property(self.read_tables())
        marks, operation_id = self.new_marks(), self.operation.operation_id
        moved = {each.name: mark_text(each.document) for each in marks}
        properties = {**self.operation.properties, **metrics_property(timed), **read, **moved}
        properties |= side_property(side)
        known = Marks(self.connector, table)
        for each in marks:
            known.note(each, operation_id)
        return self.connector.writes.finish_merge(table, handle, fragments, properties)

    def abort_unpublished(self, handle: MergeHandle, error: JobError) -> None:
        """Clean up after ``error``, which the caller raises, unless it may have left a snapshot."""
        if error.code is not ErrorCode.COMMIT_OUTCOME_UNKNOWN:
            with self.cleaning_up():
                self.lease.end()
            with self.cleaning_up():
                self.abort(handle)
            for each in self.new_marks():
                with self.cleaning_up():
                    Marks(self.connector, self.table).forget(each, self.operation.operation_id)

    @contextmanager
    def writing(self, handle: MergeHandle) -> Iterator[None]:
        """A failing block leaves no files and no guard, unless removing them fails too."""
        try:
            yield
        except BaseException:
            with self.cleaning_up():
                self.lease.end()
            with self.cleaning_up():
                self.wait_for_tasks()
            with self.cleaning_up():
                self.abort(handle)
            raise

    def wait_for_tasks(self) -> None:
        """Wait for tasks that go on after a failure; a run without Spark has none."""

    @contextmanager
    def cleaning_up(self) -> Iterator[None]:
        """Only log errors of the block, which cleans up after a failure that matters more."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - of the storage, of Spark or of the connector
            self.progress.say(f"cleaning up failed, so files may be left: {error}")

    def abort(self, handle: MergeHandle) -> None:
        """Abort the write, so that it leaves no files and no guard."""
        self.connector.writes.abort_merge(self.table, handle)


def counted(metrics: Metrics, reports: Sequence[TaskReport]) -> Metrics:
    """``metrics`` with what the sink tasks did."""
    fragments = [each for report in reports for each in report.fragments]
    return replace(
        metrics,
        inserted=sum(report.inserted for report in reports),
        updated=sum(report.updated for report in reports),
        deleted=sum(report.deleted for report in reports),
        carried=sum(each.rows_carried for each in fragments),
        files_added=sum(each.files_added for each in fragments),
        files_removed=sum(each.files_removed for each in fragments),
        files_rewritten=sum(each.files_rewritten for each in fragments),
        bytes_added=sum(each.bytes_added for each in fragments),
        bytes_removed=sum(each.bytes_removed for each in fragments),
        deletion_vectors_added=sum(each.deletion_vectors_added for each in fragments),
    )


def with_publication(metrics: Metrics, snapshot: CommittedSnapshot) -> Metrics:
    """``metrics`` with what the connector recorded about publishing."""
    found = recorded_metrics(snapshot.properties)
    return replace(
        metrics, publish_attempts=found.publish_attempts, snapshots_met=found.snapshots_met
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkRun(StatementRun[Spec_co]):
    """One attempt of a statement that reads and writes rows with Spark.

    ``sources`` are the request's sources, each with a temporary view. ``moment`` is the statement's
    current time. ``reads_itself``: a source may read the target.
    """

    spark: SparkSession
    sources: Sources
    moment: StatementTime
    reads_itself: bool = False

    def evidence(self) -> Mapping[str, SourceEvidence]:
        """What the sources are."""
        return evidence_of(self.sources)

    def read_tables(self) -> Mapping[str, Sequence[int]]:
        """The snapshots of the tables that sources read, by name; the base is none of them."""
        return read_snapshots(self.sources.read_tables, self.table)

    def new_marks(self) -> Sequence[NewMark]:
        """The marks of incremental sources that the snapshot is to record."""
        return self.sources.new_marks

    @property
    def required_columns(self) -> tuple[str, ...]:
        """The table's NOT NULL columns, which the primary key belongs to."""
        keys = self.table.key_columns
        return tuple(c.name for c in self.table.columns if not c.nullable or c.name in keys)

    def expected_partitions(self) -> ExpectedPartitions:
        """The partitions that may change; raises as ``PartitionSpecs.constants``."""
        constants = SparkConstants(self.spark, self.table, self.moment)
        return ExpectedPartitions.of(self.guards, PartitionSpecs(self.table, constants))

    def wait_for_tasks(self) -> None:
        """Wait for tasks that go on after a failure."""
        wait_for_stragglers(self.spark)
