"""The general physical plan: any ON, any clauses, with and without a source.

Spark joins the source with the target's needed columns and row ids, or filters the target. The
searched CASE decides which clause applies, and only the changes are shuffled to the sink tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from spark_jobs.engine.analysis.analyzed import AnalyzedMerge
from spark_jobs.engine.analysis.statement_time import StatementTime
from spark_jobs.engine.merge.cases import MATCHED, with_case_number
from spark_jobs.engine.merge.join import filtered, join, reduced, with_source_present
from spark_jobs.engine.merge.matches import observed_matches
from spark_jobs.engine.merge.processors import RowChangeProcessor
from spark_jobs.engine.runtime.arrow_batches import arrow_batches
from spark_jobs.engine.source.materialized import MaterializedSource
from spark_jobs.engine.write.change_writer import REPORT_SCHEMA, ChangeWriter, TaskReport
from spark_jobs.engine.write.derivation import by_position
from spark_jobs.engine.write.redistribution import WriteSize, redistribute
from spark_jobs.spi.arrow_tasks import map_in_arrow
from spark_jobs.spi.connector import ConnectorScan
from spark_jobs.spi.dynamic_filter import DynamicFilter
from spark_jobs.spi.tables import PlannedFile, row_bytes_of
from spark_jobs.spi.writes import WriteLayout


@dataclass(frozen=True, slots=True)
class PlanResult:
    """What a physical plan yields: sink tasks' reports, and how many row pairs ON joined."""

    reports: list[TaskReport]
    matched: int


@dataclass(frozen=True, slots=True)
class GeneralPlan:
    """One run of the general plan over planned files and a materialised source.

    ``source`` is None for DELETE and UPDATE. ``dynamic_filter`` is the source's, if the scan should
    use it.
    """

    spark: SparkSession
    merge: AnalyzedMerge
    moment: StatementTime
    processor: RowChangeProcessor
    scan: ConnectorScan
    files: Sequence[PlannedFile]
    source: MaterializedSource | None
    dynamic_filter: DynamicFilter | None
    update_layout: WriteLayout | None
    insert_layout: WriteLayout
    broadcast_limit: int
    target_file_size: int

    def run(self, writer: ChangeWriter) -> PlanResult:
        """Compute the changes and store them through ``writer``; nothing is published."""
        changes = self.changes()
        named = replace(writer, columns=tuple(changes.columns))
        written = map_in_arrow(by_position(changes), named, REPORT_SCHEMA)
        with arrow_batches(changes, self.row_bytes):
            reports = [TaskReport.from_json(row["report"]) for row in written.collect()]
        matched = observed_matches(written)
        return PlanResult(reports, self._matches() if matched is None else matched)

    def changes(self) -> DataFrame:
        """The change rows as they reach the sink tasks (columns: see ``spi.rows``)."""
        return redistribute(
            self._change_rows(),
            self.update_layout,
            self.insert_layout,
            self.write_size,
        )

    @property
    def row_bytes(self) -> float:
        """About the size of a row: in the target's files or, if that is more, of the source."""
        stored = row_bytes_of(self.files)
        if self.source is None:
            return stored
        return max(stored, self.source.byte_size / max(self.source.row_count, 1))

    def _matches(self) -> int:
        """The count of row pairs that ON joins, by a separate join."""
        processor = self.processor
        if processor.inserts_apart:
            processor = processor.only("matched")
        joined = with_case_number(self._joined(processor), processor.merge)
        return self.moment.fixed(joined.where(MATCHED)).count()

    def _change_rows(self) -> DataFrame:
        if not self.processor.inserts_apart:
            return self.moment.fixed(self._change_rows_of(self.processor))
        changed = self._change_rows_of(self.processor.only("matched"))
        new = self._change_rows_of(self.processor.only("not_matched"))
        return self.moment.fixed(changed.unionByName(new, allowMissingColumns=True))

    def _change_rows_of(self, processor: RowChangeProcessor) -> DataFrame:
        return processor.change_rows(self._joined(processor))

    def _joined(self, processor: RowChangeProcessor) -> DataFrame:
        """The rows that ON joins, or WHERE selects."""
        merge = processor.merge
        names = merge.table.column_names
        columns = [name for name in names if name in processor.target_columns]
        target = self.scan.read(self.spark, merge.table, self.files, columns, self.dynamic_filter)
        if self.source is None:
            return filtered(merge, target)
        source = with_source_present(self.source.frame)
        broadcast = self.source.byte_size <= self.broadcast_limit
        if broadcast and self.dynamic_filter is None:
            target = reduced(merge, target, source)
        return join(merge, target, source, broadcast)

    @property
    def write_size(self) -> WriteSize:
        """What the statement may have to write."""
        file_bytes = sum(file.size for file in self.files)
        file_rows = sum(file.row_count for file in self.files)
        new_rows = 0
        if self.processor.writes_inserts:
            # UPDATE may rewrite every row; a source row is inserted or updates one row.
            rewrites_any = self.source is None or self.merge.has("not_matched_by_source")
            new_rows = file_rows if rewrites_any else 0
            new_rows += self.source.row_count if self.source else 0
        return WriteSize(
            file_sizes={file.ordinal: file.size for file in self.files},
            new_rows=new_rows,
            new_row_bytes=max(file_bytes // max(file_rows, 1), self._source_row_bytes()),
            target_file_size=self.target_file_size,
            parallelism=self.spark.sparkContext.defaultParallelism,
            tasks_per_core=self.tasks_per_core,
        )

    @property
    def tasks_per_core(self) -> int:
        """The number of sink tasks for each core; one if every task with UPDATE rows adds files."""
        layout = self.update_layout
        adds_files = layout is not None and layout.adds_files
        return 1 if adds_files and any(self.processor.assigned_columns) else 2

    def _source_row_bytes(self) -> int:
        return self.source.byte_size // max(self.source.row_count, 1) if self.source else 0
