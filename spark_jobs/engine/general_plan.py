"""The general physical plan: any ON, any clauses, with and without a source.

Spark joins the source with the target's needed columns and row ids, or filters the target, the
searched CASE decides, and only the changes are shuffled to the sink tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.engine.analyzed import AnalyzedMerge
from spark_jobs.engine.cases import SOURCE_PRESENT
from spark_jobs.engine.catalyst import observed_metric
from spark_jobs.engine.join import filtered, join
from spark_jobs.engine.processors import JOIN_METRICS, RowChangeProcessor
from spark_jobs.engine.redistribution import WriteSize, redistribute
from spark_jobs.engine.source import MaterializedSource
from spark_jobs.engine.writer import REPORT_SCHEMA, ChangeWriter, TaskReport
from spark_jobs.spi.connector import ConnectorScan
from spark_jobs.spi.tables import PlannedFile
from spark_jobs.spi.writes import WriteLayout


@dataclass(frozen=True, slots=True)
class PlanResult:
    """What a physical plan yields: the sink tasks' reports and the pairs of rows that ON joined."""

    reports: list[TaskReport]
    matched: int


@dataclass(frozen=True, slots=True)
class GeneralPlan:
    """One run of the general plan over planned files and a materialised source.

    ``source`` is None for DELETE and UPDATE.
    """

    spark: SparkSession
    merge: AnalyzedMerge
    processor: RowChangeProcessor
    scan: ConnectorScan
    files: Sequence[PlannedFile]
    source: MaterializedSource | None
    update_layout: WriteLayout
    insert_layout: WriteLayout
    target_columns: Sequence[str]
    broadcast_limit: int
    target_file_size: int

    def run(self, writer: ChangeWriter) -> PlanResult:
        """Compute the changes and store them through ``writer``; nothing is published."""
        changes = self.changes()
        # PySpark takes the names for texts of its own, in which a dot leads to a field.
        plain = changes.toDF(*(f"c{index}" for index in range(len(changes.columns))))
        written = plain.mapInArrow(replace(writer, columns=tuple(changes.columns)), REPORT_SCHEMA)
        reports = [TaskReport.from_json(row["report"]) for row in written.collect()]
        return PlanResult(reports, observed_metric(written, JOIN_METRICS))

    def changes(self) -> DataFrame:
        """The change rows as they reach the sink tasks (columns: see ``spi.rows``)."""
        return redistribute(
            self.processor.change_rows(self._joined()),
            self.update_layout,
            self.insert_layout,
            self._write_size(),
        )

    def _joined(self) -> DataFrame:
        target = self.scan.read(self.spark, self.merge.table, self.files, self.target_columns)
        if self.source is None:
            return filtered(self.merge, target)
        source = self.source.frame.withColumn(SOURCE_PRESENT, F.lit(True))
        return join(self.merge, target, source, self.source.byte_size <= self.broadcast_limit)

    def _write_size(self) -> WriteSize:
        file_bytes = sum(file.size for file in self.files)
        new_rows = new_row_bytes = 0
        if self.source is not None and self.merge.has("not_matched"):
            new_rows = self.source.row_count
            new_row_bytes = self.source.byte_size // max(new_rows, 1)
        elif self.source is None and self.processor.writes_inserts:
            # UPDATE moves rows to other partitions.
            new_rows = sum(file.row_count for file in self.files)
            new_row_bytes = file_bytes // max(new_rows, 1)
        return WriteSize(
            file_sizes={file.ordinal: file.size for file in self.files},
            new_rows=new_rows,
            new_row_bytes=new_row_bytes,
            target_file_size=self.target_file_size,
            parallelism=self.spark.sparkContext.defaultParallelism,
        )
