"""The general physical plan: any ON, any clauses, with and without a source.

Spark joins the source with the target's needed columns and row ids, or filters the target. The
searched CASE decides which clause applies, and only the changes are shuffled to the sink tasks.

======================================  ======================================
clauses                                 join
======================================  ======================================
only MATCHED                            INNER
only NOT MATCHED                        source ANTI target
NOT MATCHED and MATCHED                 source LEFT OUTER target
NOT MATCHED BY SOURCE, no NOT MATCHED   target LEFT OUTER source
NOT MATCHED BY SOURCE and NOT MATCHED   FULL OUTER
======================================  ======================================

If ON has a join key, target rows without a match are not needed, the source fits a broadcast and
the scan has no dynamic filter, then a broadcast LEFT SEMI join reduces the target first. The other
rows are neither shuffled nor given a row id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.contract.sql_text import quote
from spark_jobs.engine.analysis.analyzed import AnalyzedMerge
from spark_jobs.engine.analysis.statement_time import StatementTime
from spark_jobs.engine.merge.cases import MATCHED, SOURCE_PRESENT, with_case_number
from spark_jobs.engine.merge.processors import RowChangeProcessor, observed_matches
from spark_jobs.engine.runtime.arrow_batches import arrow_batches
from spark_jobs.engine.runtime.sql_text import column_of, named, null_of
from spark_jobs.engine.source.materialized import MaterializedSource
from spark_jobs.engine.write.change_writer import REPORT_SCHEMA, ChangeWriter, TaskReport
from spark_jobs.engine.write.derivation import by_position
from spark_jobs.engine.write.redistribution import WriteSize, redistribute
from spark_jobs.spi import rows
from spark_jobs.spi.arrow_tasks import map_in_arrow
from spark_jobs.spi.connector import ConnectorScan
from spark_jobs.spi.evidence import DynamicFilter
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
            return _filtered(merge, target)
        source = _with_source_present(self.source.frame)
        broadcast = self.source.byte_size <= self.broadcast_limit
        if broadcast and self.dynamic_filter is None:
            target = _reduced(merge, target, source)
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


def join(
    merge: AnalyzedMerge, target: DataFrame, source: DataFrame, broadcast_source: bool
) -> DataFrame:
    """The joined rows of a MERGE.

    ``target`` has the columns that the clauses use and ``__merge_row_id``; ``source`` has its
    columns and ``__merge_source_present``. Both keep their alias. The kind of join leaves out rows
    that have no match and so cannot be changed by any clause. In an ANTI join the row id is NULL.
    """
    on = merge.on.column
    target = target.alias(merge.target_alias)
    source = source.alias(merge.source_alias)
    small = F.broadcast(source) if broadcast_source else source
    if merge.has("not_matched_by_source"):
        kind = "full_outer" if merge.has("not_matched") else "left_outer"
        return target.join(source if kind == "full_outer" else small, on, kind)
    if not merge.has("not_matched"):
        return target.join(small, on, "inner")
    if merge.has("matched"):
        return source.join(target, on, "left_outer")
    no_row_id = null_of(target.schema[rows.ROW_ID].dataType)
    return source.join(target, on, "left_anti").selectExpr("*", named(no_row_id, rows.ROW_ID))


def _with_source_present(frame: DataFrame) -> DataFrame:
    """``frame`` with ``__merge_source_present`` (boolean), which is true."""
    return frame.selectExpr("*", named("TRUE", SOURCE_PRESENT))


def _filtered(merge: AnalyzedMerge, target: DataFrame) -> DataFrame:
    """The rows of a statement without a source: those for which WHERE is TRUE.

    They look like joined rows that all matched a source row.
    """
    # Spark does not take a bare NULL as boolean.
    where = merge.on.column.cast("boolean")
    if merge.on.long is not None and merge.on.long.has_many_terms:
        # Spark would hand each term to its Parquet reader, whose stack a thousand overflow.
        where = F.coalesce(where, F.lit(False))
    return _with_source_present(target.alias(merge.target_alias).where(where))


def _reduced(merge: AnalyzedMerge, target: DataFrame, source: DataFrame) -> DataFrame:
    """``target`` without rows that match no source row, if no clause needs them and ON has a key.

    The row id is taken apart before the join and put together after it: Spark moves a semi join
    below a scan's own joins and projections, unless one of them makes a struct. So only matching
    rows pay the cost of a row id.
    """
    if merge.has("not_matched_by_source") or not merge.read_set.join_keys:
        return target
    target = target.alias(merge.target_alias)
    source = source.alias(merge.source_alias)
    keys = [column_of(merge.source_alias, name) for name in sorted(merge.on.source_columns)]
    matching = F.broadcast(source.selectExpr(*keys).alias(merge.source_alias))
    columns = [quote(name) for name in target.columns if name != rows.ROW_ID]
    names = target.selectExpr(f"{rows.ROW_ID}.*").columns
    fields = {f"{rows.RESERVED_PREFIX}row_id_{i}": name for i, name in enumerate(names)}
    parts = [named(f"{rows.ROW_ID}.{quote(name)}", flat) for flat, name in fields.items()]
    flat = target.selectExpr(*columns, *parts).alias(merge.target_alias)
    matched = flat.join(matching, merge.on.column, "left_semi")
    row_id = f"struct({', '.join(named(flat, name) for flat, name in fields.items())})"
    return matched.selectExpr(*columns, named(row_id, rows.ROW_ID))
