"""INSERT and INSERT OVERWRITE from the statement to one snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from spark_jobs.contract.inserts import InsertOverwriteSpec, InsertStatement
from spark_jobs.contract.result import Metrics
from spark_jobs.engine.analysis.partition_specs import PartitionSpecs, SparkConstants
from spark_jobs.engine.changes.changed_rows import ChangeShape, Unpublished
from spark_jobs.engine.changes.late_rows import Placing, require_quarantine, set_aside
from spark_jobs.engine.changes.row_checking import RowChecking
from spark_jobs.engine.insert.insert_writer import CopiedRows, InsertPass, InsertWriter, written
from spark_jobs.engine.insert.inserted_rows import SOURCE, AnalyzedInsert, analyze_insert, by_index
from spark_jobs.engine.insert.new_rows import NewRows, file_size, new_rows_of
from spark_jobs.engine.insert.one_pass import COMPRESSION, OnePass
from spark_jobs.engine.insert.overwrite_commit import OverwriteCommit, begin_overwrite
from spark_jobs.engine.insert.partition_shares import Partition
from spark_jobs.engine.insert.replacement import ReplacedFiles, Replacement, rows_replaced
from spark_jobs.engine.insert.streaming import stored_partitions, streamed, why_not_streamed
from spark_jobs.engine.runtime.arrow_batches import batches_of_short_rows
from spark_jobs.engine.runtime.query_status import plan_bytes
from spark_jobs.engine.source.materialized import materialize
from spark_jobs.engine.source.open_source import OpenSource
from spark_jobs.engine.write.change_writer import REPORT_SCHEMA, TaskReport
from spark_jobs.engine.write.clustering import distribute
from spark_jobs.engine.write.derivation import by_position
from spark_jobs.engine.write.expected_partitions import require_few_new
from spark_jobs.engine.write.guarding import Guarding
from spark_jobs.engine.write.partition_counts import placement
from spark_jobs.engine.write.recorder import Recording
from spark_jobs.engine.write.repacking import repacked
from spark_jobs.engine.write.statement_run import SparkRun, StatementOutcome
from spark_jobs.errors import DataError, ErrorCode, NotSupportedError
from spark_jobs.spi.arrow_tasks import map_in_arrow
from spark_jobs.spi.sinks import MergeHandle
from spark_jobs.spi.tables import PlannedFile, row_bytes_of
from spark_jobs.spi.writes import WriteLayout


@dataclass(frozen=True, slots=True)
class OverwriteRun(SparkRun[InsertStatement]):
    """One attempt of INSERT or INSERT OVERWRITE."""

    def check(self) -> None:
        """Check the statement against the schemas."""
        replacement = self._replacement()
        self._placing(self._analyzed(replacement))
        self._checking(replacement)
        self.expected_partitions()

    def run(self) -> StatementOutcome:
        """Run the statement."""
        with self.progress.phase("analyze"):
            replacement = self._replacement()
            insert = self._analyzed(replacement)
            checking = self._checking(replacement)
            expected = self.expected_partitions()
            placing = self._placing(insert)
        planned = self.planned_files()
        with self.progress.phase("source"):
            self.sources.land()
            late = None
            if placing is not None:
                opened = self.sources[self.spec.source]
                late = set_aside(self, opened, placing, expected.specs or ())
                checking = replace(checking, late=late.side)
            source = self.sources[self.spec.source]
            if late is not None:
                source = OpenSource(late.rest, is_pinned=True)
            one_pass = OnePass(self, insert, self._layout, row_bytes_of(planned))
            new = one_pass.copied(source)
        if new is None and self._streams(insert, replacement, planned):
            return self._streamed(insert, replacement, planned, checking)
        with self.progress.phase("source"):
            new = new or self._new_rows(insert, source, one_pass)
            self.sources.require_unchanged()
        partitions = new.partitions(len(self.table.partitioned_by))
        replaced = self._replaced(replacement, partitions, planned, new.source_rows)
        metrics = self._metrics(new.source_rows, planned, replaced)
        metrics = metrics if late is None else late.reported(metrics)
        metrics = expected.checked(
            replacement.valued(partitions), metrics, reports_only=self.dry_run
        )
        guarding = self.guarding(planned)
        metrics = guarding.before_writing(metrics, replaced.all)
        if self.plan_only:
            return StatementOutcome(None, metrics, plan=replaced.plan(new.source_rows))
        is_empty = not partitions and not replaced.all
        if is_empty and (self.dry_run or self.publishes_nothing):
            checks = checking.found(Unpublished(self.table, planned))
            metrics = guarding.before_publishing(metrics, checks)
            return StatementOutcome(None, metrics, side=checking.late)
        return self._write(insert, new, replacement, guarding, replaced, metrics, checking)

    def _replacement(self) -> Replacement:
        self.connector.metadata.require_writable(self.table)
        constants = SparkConstants(self.spark, self.table, self.moment)
        specs = PartitionSpecs(self.table, constants)
        return Replacement.of(self.spec, self.table, specs)

    def _analyzed(self, replacement: Replacement) -> AnalyzedInsert:
        schema = self.sources[self.spec.source].frame.schema
        partition = replacement.specs[0]
        return analyze_insert(self.spark, self.spec, self.table, schema, partition)

    def _checking(self, replacement: Replacement) -> RowChecking:
        given = {
            "checks": bool(self.guards.checks),
            "audit_table": self.guards.audit_table is not None,
            "preview_rows": self.preview is not None,
        }
        names = [name for name, is_given in given.items() if is_given]
        if names and replacement.appends and self.table.key_columns:
            raise NotSupportedError(
                f"{names[0]}: an INSERT INTO {self.table.name} replaces rows with equal keys as "
                "the table's primary key says, so that it is not known which rows change.",
                "Write it as a MERGE on the key, which knows them.",
            )
        return RowChecking.of(self, self.spark, ChangeShape(self.table), self.sources)

    def _placing(self, insert: AnalyzedInsert) -> Placing | None:
        """How rows get into partitions, if late ones are set aside; raises if they cannot be."""
        if self.guards.quarantine_table is None:
            return None
        require_quarantine(self, self.sources[self.spec.source])
        return Placing(SOURCE, insert.values, insert.stored_types, by_number=True)

    def _replaced(
        self,
        replacement: Replacement,
        partitions: Sequence[Partition],
        planned: Sequence[PlannedFile],
        source_rows: int,
    ) -> ReplacedFiles:
        """The files that new rows of ``partitions`` replace, if they may be stored.

        Raises:
            DataError: ROW_OUTSIDE_PARTITION, PARTITION_NOT_EXPECTED, TOO_MANY_PARTITIONS,
                SOURCE_EMPTY.
        """
        replaced = replacement.replaced(planned, partitions)
        replacement.check(replaced, partitions)
        require_few_new(self.options, self.table, replacement.names(partitions), planned)
        self._require_rows(partitions)
        self.progress.say(
            f"{source_rows} source rows for {len(partitions)} partitions; "
            f"{len(replaced.all)} of {len(planned)} files to replace"
        )
        return replaced

    def _metrics(
        self, source_rows: int, planned: Sequence[PlannedFile], replaced: ReplacedFiles
    ) -> Metrics:
        return Metrics(
            source_rows=source_rows,
            files_total=len(planned),
            files_scanned=len(replaced.partial),
            attempts=self.attempt,
            sources=self.sources.metrics,
        )

    def _new_rows(self, insert: AnalyzedInsert, source: OpenSource, one_pass: OnePass) -> NewRows:
        """The rows to store, counted, and evaluated once unless the source is pinned."""
        layout = self._layout
        frame = by_index(source.frame)
        rows = self.moment.fixed(insert.rows(frame))
        size = plan_bytes(frame) if source.is_pinned else 0
        if not source.is_pinned or source.landed is not None:
            materialized = materialize(
                self.spark, rows, rows.columns, self.connector.storage, self.scratch
            )
            spilled = one_pass.materialized(materialized, list(insert.values), layout.cluster_by)
            if spilled is not None:
                return spilled
            rows, size = materialized.frame, materialized.byte_size // COMPRESSION
        return new_rows_of(rows, layout, one_pass.row_bytes, size)

    def _streams(
        self, insert: AnalyzedInsert, replacement: Replacement, planned: Sequence[PlannedFile]
    ) -> bool:
        why = why_not_streamed(self, insert, replacement, self._layout, planned)
        if why is not None:
            self.progress.say(f"the source's rows are known before they are written: {why}")
        return why is None

    def _streamed(
        self,
        insert: AnalyzedInsert,
        replacement: Replacement,
        planned: Sequence[PlannedFile],
        checking: RowChecking,
    ) -> StatementOutcome:
        """Store the rows of the source as its query yields them, then see what they replace."""
        layout, partitions = self._layout, list[Partition]()
        row_bytes = row_bytes_of(planned)
        rows = self.moment.fixed(insert.rows(by_index(self.sources[self.spec.source].frame)))
        reads_all = self.reads_itself and self.options.isolation != "snapshot"
        nothing = ReplacedFiles((), ())
        handle = begin_overwrite(
            self, replacement, partitions, nothing, reads_all=reads_all, scattered=True
        )
        with self.writing(handle):
            with self.progress.phase("write"):
                streamed_rows = streamed(self, rows, handle, layout, row_bytes)
                reports = streamed_rows.reports
                if streamed_rows.rest is not None:
                    size = streamed_rows.spilled_bytes // COMPRESSION
                    new = new_rows_of(streamed_rows.rest, layout, row_bytes, size)
                    reports += self._stored(insert, new, handle, (), None)
                writes = self.connector.writes
                reports = repacked(self.spark, writes, self.table, handle, reports, dry_run=False)
                self.sources.require_unchanged()
            partitions += stored_partitions(self.connector, self.table, reports)
            count = sum(report.inserted for report in reports)
            replaced = self._replaced(replacement, partitions, planned, count)
            metrics = self._metrics(count, planned, replaced)
            metrics = self.guarding(planned).before_writing(metrics, replaced.all)
        commit = OverwriteCommit(self, handle, replacement, partitions, reports, metrics, checking)
        return commit.outcome(self.guarding(planned), replaced)

    @property
    def _layout(self) -> WriteLayout:
        return self.connector.metadata.insert_layout(self.table)

    def _require_rows(self, partitions: Sequence[Partition]) -> None:
        spec = self.spec
        if not isinstance(spec, InsertOverwriteSpec) or spec.mode != "table" or spec.allow_empty:
            return
        if not partitions:
            raise DataError(
                ErrorCode.SOURCE_EMPTY,
                f"The source has no rows, so nothing would be left of {self.table.name}.",
                "Set allow_empty to clear the table.",
            )

    def _write(
        self,
        insert: AnalyzedInsert,
        new: NewRows,
        replacement: Replacement,
        guarding: Guarding,
        replaced: ReplacedFiles,
        metrics: Metrics,
        checking: RowChecking,
    ) -> StatementOutcome:
        partitions = new.partitions(len(self.table.partitioned_by))
        reads_all = self.reads_itself or checking.reads.target
        reads_all &= self.options.isolation != "snapshot"
        recording = checking.recording()
        handle = begin_overwrite(self, replacement, partitions, replaced, reads_all=reads_all)
        with self.writing(handle), self.progress.phase("write"):
            keys = () if replacement.appends else self.table.key_columns
            gone = replacement.partitions(partitions)
            partial = replaced.partial
            deleted = rows_replaced(self, self.spark, handle, gone, partial, recording)
            reports = self._stored(insert, new, handle, keys, recording)
            reports += (each.report for each in deleted)
        added = [each for report in reports for each in report.fragments]
        self.progress.say(f"{len(added)} files written")
        commit = OverwriteCommit(self, handle, replacement, partitions, reports, metrics, checking)
        return commit.outcome(guarding, replaced)

    def _stored(
        self,
        insert: AnalyzedInsert,
        new: NewRows,
        handle: MergeHandle,
        different_keys: tuple[str, ...],
        recording: Recording | None,
    ) -> list[TaskReport]:
        if not new.clusters:
            return []
        not_null, layout = self.required_columns, self._layout
        placed = placement(self.table, None, layout) if self.counts_by_partition else None
        if isinstance(new.rows, CopiedRows):
            insert_pass = InsertPass(new.rows, handle.sinks, not_null, placed, recording)
            return written(self.spark, insert_pass)
        size = file_size(self, new.row_bytes, keeps_clusters=layout.keeps_clusters)
        order_by = () if layout.keeps_clusters else insert.order_by
        rows = distribute(new.rows, new.clusters, layout, order_by, size)
        columns = tuple(rows.columns)
        writer = InsertWriter(handle.sinks, not_null, columns, different_keys, placed, recording)
        with batches_of_short_rows(by_position(rows), new.row_bytes) as placed_rows:
            stored = map_in_arrow(placed_rows, writer, REPORT_SCHEMA).collect()
        return [TaskReport.from_json(row["report"]) for row in stored]
