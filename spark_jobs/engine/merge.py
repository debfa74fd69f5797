"""MERGE, DELETE and UPDATE from the statement to one snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from spark_jobs.contract.properties import metrics_property
from spark_jobs.contract.request import JobOptions
from spark_jobs.contract.result import Metrics
from spark_jobs.contract.statements import DeleteSpec, MergeSpec, UpdateSpec
from spark_jobs.engine.analyzed import AnalyzedMerge
from spark_jobs.engine.analyzer import analyze_filtered, analyze_merge
from spark_jobs.engine.general_plan import GeneralPlan, PlanResult
from spark_jobs.engine.processors import RowChangeProcessor, processor_for
from spark_jobs.engine.progress import Progress
from spark_jobs.engine.pruning import NeededFiles, Pruning
from spark_jobs.engine.source import MaterializedSource, OpenSource, materialize
from spark_jobs.engine.stragglers import wait_for_stragglers
from spark_jobs.engine.subqueries import empty_views, materialize_views
from spark_jobs.engine.writer import ChangeWriter, TaskReport
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.tables import CommittedSnapshot, PlannedFile, TableHandle
from spark_jobs.spi.writes import Fragment, MergeHandle, MergeWrite, Operation, WriteLayout

if TYPE_CHECKING:
    from spark_jobs.spi.connector import Connector


@dataclass(frozen=True, slots=True)
class MergeOutcome:
    """What a statement did; ``snapshot_id`` is None when nothing changed."""

    snapshot_id: int | None
    metrics: Metrics


@dataclass(frozen=True, slots=True)
class MergeRun:
    """One attempt of one statement on a pinned table.

    ``sources`` are the request's sources, of which there is a temporary view each;
    ``scratch`` is a folder below the warehouse for this operation's temporary files.
    """

    spark: SparkSession
    connector: Connector
    table: TableHandle
    spec: MergeSpec | DeleteSpec | UpdateSpec
    sources: Mapping[str, OpenSource]
    operation: Operation
    options: JobOptions
    scratch: str
    progress: Progress

    def run(self) -> MergeOutcome:
        """Run the statement.

        Raises:
            JobError: whatever is wrong; the table is unchanged.
        """
        with self.progress.phase("analyze"):
            merge = self._analyzed()
            processor = self._processor(merge)
        with self.progress.phase("plan"):
            planned = self.connector.metadata.plan_files(self.table)
        with self.progress.phase("source"):
            source, source_rows = self._materialized(merge)
        self.progress.say(f"{source_rows} source rows")
        with self.progress.phase("prune"):
            files = Pruning(self.spark, merge, planned).needed(source)
        self.progress.say(
            f"{len(files.scanned)} of {len(planned)} files to scan, {len(files.dropped)} to drop"
        )
        metrics = Metrics(
            source_rows=source_rows, files_total=len(planned), files_scanned=len(files.scanned)
        )
        if _nothing_to_do(merge, files, source):
            return MergeOutcome(None, metrics)
        return self._write(merge, processor, files, source, metrics)

    def _analyzed(self) -> AnalyzedMerge:
        if isinstance(self.spec, MergeSpec):
            schema = self.sources[self.spec.source].frame.schema
            return analyze_merge(self.spark, self.spec, self.table, schema)
        with empty_views(self.spark, self.sources):
            return analyze_filtered(self.spark, self.spec, self.table)

    def _processor(self, merge: AnalyzedMerge) -> RowChangeProcessor:
        metadata = self.connector.metadata
        paradigm = metadata.row_change_paradigm(self.table)
        return processor_for(paradigm, merge, metadata.insert_layout(self.table))

    def _materialized(self, merge: AnalyzedMerge) -> tuple[MaterializedSource | None, int]:
        """MERGE's source, and the number of rows that were read of sources."""
        storage = self.connector.storage
        if isinstance(self.spec, MergeSpec):
            frame = self.sources[self.spec.source].frame
            source = materialize(self.spark, frame, merge.source_columns, storage, self.scratch)
            return source, source.row_count
        columns = merge.on.subquery_columns
        return None, materialize_views(self.spark, self.sources, columns, storage, self.scratch)

    def _write(
        self,
        merge: AnalyzedMerge,
        processor: RowChangeProcessor,
        files: NeededFiles,
        source: MaterializedSource | None,
        metrics: Metrics,
    ) -> MergeOutcome:
        write = MergeWrite(
            operation=self.operation,
            files=tuple(files.scanned),
            assigned_columns=processor.assigned_columns,
            on_columns=tuple(sorted(merge.on.target_columns)),
            target_file_size=self.options.target_file_size,
            rewrite_share=self.options.rewrite_share,
        )
        writes = self.connector.writes
        handle = writes.begin_merge(self.table, write)
        fragments: list[Fragment] = []
        try:
            with self.progress.phase("write"):
                result = PlanResult([], 0)
                if files.scanned or merge.has("not_matched"):
                    result = self._physical_plan(merge, processor, files.scanned, source).run(
                        self._writer(merge, handle, write)
                    )
            dropped = TaskReport(
                deleted=sum(file.live_row_count for file in files.dropped),
                fragments=writes.drop_files(self.table, handle, files.dropped),
            )
            matched = result.matched if merge.has_source else 0
            result = PlanResult([*result.reports, dropped], matched)
            fragments = [each for report in result.reports for each in report.fragments]
            metrics = _counted(metrics, result)
            self.progress.say(
                f"{metrics.inserted} rows to insert, {metrics.updated} to update, "
                f"{metrics.deleted} to delete, "
                f"{metrics.files_rewritten} of {metrics.files_total} files rewritten"
            )
            if not fragments:
                writes.abort_merge(self.table, handle, fragments)
                return MergeOutcome(None, metrics)
        except BaseException:
            wait_for_stragglers(self.spark)
            writes.abort_merge(self.table, handle, fragments)
            raise
        with self.progress.phase("commit"):
            snapshot = self._published(handle, fragments, metrics)
        self.progress.say(f"snapshot {snapshot.snapshot_id} committed")
        return MergeOutcome(snapshot.snapshot_id, metrics)

    def _published(
        self, handle: MergeHandle, fragments: Sequence[Fragment], metrics: Metrics
    ) -> CommittedSnapshot:
        writes = self.connector.writes
        try:
            return writes.finish_merge(self.table, handle, fragments, self._properties(metrics))
        except JobError as error:
            if error.code is not ErrorCode.COMMIT_OUTCOME_UNKNOWN:
                writes.abort_merge(self.table, handle, fragments)
            raise

    def _physical_plan(
        self,
        merge: AnalyzedMerge,
        processor: RowChangeProcessor,
        files: Sequence[PlannedFile],
        source: MaterializedSource | None,
    ) -> GeneralPlan:
        """The one place where the physical plan is chosen."""
        metadata = self.connector.metadata
        assigned = sorted({name for case in merge.cases for name in case.values})
        insert_layout = metadata.insert_layout(self.table)
        return GeneralPlan(
            spark=self.spark,
            merge=merge,
            processor=processor,
            scan=self.connector.scan,
            files=files,
            source=source,
            update_layout=metadata.update_layout(self.table),
            insert_layout=insert_layout if processor.writes_inserts else WriteLayout((), ()),
            row_id_columns=metadata.merge_row_id_columns(self.table, assigned),
            broadcast_limit=self.options.broadcast_limit,
            target_file_size=self.options.target_file_size,
        )

    def _writer(self, merge: AnalyzedMerge, handle: MergeHandle, write: MergeWrite) -> ChangeWriter:
        return ChangeWriter(
            sinks=handle.sinks,
            not_null=tuple(column.name for column in self.table.columns if not column.nullable),
            assigned_columns=write.assigned_columns,
            on_columns=write.on_columns,
            labels=tuple(case.label for case in merge.cases),
            allows_repeated_matches=merge.allows_repeated_matches,
        )

    def _properties(self, metrics: Metrics) -> dict[str, str]:
        timed = replace(metrics, seconds=self.progress.seconds)
        return {**self.operation.properties, **metrics_property(timed)}


def _nothing_to_do(
    merge: AnalyzedMerge, files: NeededFiles, source: MaterializedSource | None
) -> bool:
    has_rows = source is None or source.row_count > 0
    can_insert = has_rows and merge.has("not_matched")
    can_match = has_rows and merge.has("matched")
    can_change = bool(files.scanned) and (can_match or merge.has("not_matched_by_source"))
    return not can_insert and not can_change and not files.dropped


def _counted(metrics: Metrics, result: PlanResult) -> Metrics:
    fragments = [each for report in result.reports for each in report.fragments]
    return replace(
        metrics,
        matched=result.matched,
        inserted=sum(report.inserted for report in result.reports),
        updated=sum(report.updated for report in result.reports),
        deleted=sum(report.deleted for report in result.reports),
        carried=sum(each.rows_carried for each in fragments),
        files_added=sum(each.files_added for each in fragments),
        files_removed=sum(each.files_removed for each in fragments),
        files_rewritten=sum(each.files_rewritten for each in fragments),
        bytes_added=sum(each.bytes_added for each in fragments),
        bytes_removed=sum(each.bytes_removed for each in fragments),
        deletion_vectors_added=sum(each.deletion_vectors_added for each in fragments),
    )
