"""INSERT, INSERT OVERWRITE, TRUNCATE and DROP PARTITION from the statement to one snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame

from spark_jobs.contract.inserts import (
    DropPartitionsSpec,
    InsertIntoSpec,
    InsertOverwriteSpec,
    PartitionStatement,
)
from spark_jobs.contract.result import Metrics
from spark_jobs.engine.analysis.catalyst import plan_bytes
from spark_jobs.engine.analysis.char_columns import noted_lengths
from spark_jobs.engine.analysis.store_assignment import frame_type
from spark_jobs.engine.insert.copied_files import CopiedFiles, copied_files
from spark_jobs.engine.insert.insert_pass import (
    CopiedRows,
    InsertPass,
    TaskClusters,
    known_clusters,
    spilled_rows,
    task_clusters,
    written,
)
from spark_jobs.engine.insert.insert_writer import InsertWriter
from spark_jobs.engine.insert.inserted_rows import (
    AnalyzedInsert,
    analyze_insert,
    by_index,
    partition_specs,
)
from spark_jobs.engine.insert.overwrite_commit import OverwriteCommit
from spark_jobs.engine.insert.replacement import Partition, Replacement
from spark_jobs.engine.source.materialized import MaterializedSource, materialize
from spark_jobs.engine.source.open_source import OpenSource
from spark_jobs.engine.write.change_writer import REPORT_SCHEMA, TaskReport
from spark_jobs.engine.write.clustering import (
    Cluster,
    FileSize,
    clusters_of,
    distribute,
    with_layout_columns,
)
from spark_jobs.engine.write.derivation import by_position
from spark_jobs.engine.write.statement_run import StatementOutcome, StatementRun
from spark_jobs.errors import DataError, ErrorCode
from spark_jobs.spi.arrow_tasks import map_in_arrow
from spark_jobs.spi.connector import ArrowRows
from spark_jobs.spi.tables import PlannedFile, TableHandle
from spark_jobs.spi.writes import MergeHandle, MergeWrite, WriteLayout

# Bytes of a row as Arrow that make about one byte of a data file.
_COMPRESSION: Final = 4


@dataclass(frozen=True, slots=True)
class NewRows:
    """The rows that a statement adds: as they are stored, with their clusters counted.

    ``rows`` of a frame are distributed; others are written by the tasks that read them.
    """

    rows: DataFrame | CopiedRows
    clusters: Sequence[Cluster]
    source_rows: int
    row_bytes: float

    def partitions(self, keys: int) -> list[Partition]:
        """The partitions that occur, each once."""
        return list(dict.fromkeys(cluster.key[:keys] for cluster in self.clusters))


@dataclass(frozen=True, slots=True)
class OverwriteRun(StatementRun[PartitionStatement]):
    """One attempt of INSERT, INSERT OVERWRITE, TRUNCATE or DROP PARTITION."""

    def check(self) -> None:
        """Hold the statement against the schemas.

        Raises:
            JobError: what is wrong.
        """
        self._analyzed(self._replacement())

    def run(self) -> StatementOutcome:
        """Run the statement.

        Raises:
            JobError: whatever is wrong; the table is unchanged.
        """
        with self.progress.phase("analyze"):
            replacement = self._replacement()
            insert = self._analyzed(replacement)
        with self.progress.phase("plan"):
            planned = self.connector.metadata.plan_files(self.table)
        if isinstance(self.spec, DropPartitionsSpec) and not self.spec.if_exists:
            replacement.require_found(planned)
        with self.progress.phase("source"):
            self.sources.land()
            new = self._new_rows(insert, planned) if insert else None
            self.sources.require_unchanged()
        partitions = new.partitions(len(self.table.partition_keys)) if new else []
        replaced = replacement.replaced(planned, partitions)
        replacement.check(replaced, partitions)
        self._require_rows(new)
        self.progress.say(
            f"{new.source_rows if new else 0} source rows for {len(partitions)} partitions; "
            f"{len(replaced)} of {len(planned)} files to replace"
        )
        metrics = Metrics(
            source_rows=new.source_rows if new else 0,
            files_total=len(planned),
            attempts=self.attempt,
            sources=self.sources.metrics,
        )
        if not partitions and not replaced:
            return StatementOutcome(None, metrics)
        return self._write(insert, new, replacement, replaced, metrics)

    def _replacement(self) -> Replacement:
        # Refuses what can not be written here, before anything is read.
        self.connector.metadata.row_change_paradigm(self.table)
        specs = partition_specs(self.spark, self.table, self.moment)
        return Replacement.of(self.spec, self.table, specs)

    def _analyzed(self, replacement: Replacement) -> AnalyzedInsert | None:
        if not isinstance(self.spec, InsertIntoSpec | InsertOverwriteSpec):
            return None
        schema = self.sources[self.spec.source].frame.schema
        partition = replacement.specs[0]
        return analyze_insert(self.spark, self.spec, self.table, schema, partition)

    def _new_rows(self, insert: AnalyzedInsert, planned: Sequence[PlannedFile]) -> NewRows:
        """The rows as they are stored, evaluated once unless the source is pinned, and counted."""
        assert isinstance(self.spec, InsertIntoSpec | InsertOverwriteSpec)  # noqa: S101
        source = self.sources[self.spec.source]
        copied = self._copied_rows(insert, source, planned)
        if copied is not None:
            return copied
        frame = by_index(source.frame)
        rows = self.moment.fixed(insert.rows(frame))
        size = plan_bytes(frame) if source.is_pinned else 0
        if not source.is_pinned or source.landed is not None:
            kept = materialize(self.spark, rows, rows.columns, self.connector.storage, self.scratch)
            columns, keys = list(insert.values), self._layout.cluster_by
            spilled = self._spilled_rows(insert, kept, columns, keys, planned)
            if spilled is not None:
                return spilled
            rows, size = kept.frame, kept.byte_size // _COMPRESSION
        rows = with_layout_columns(rows, self._layout)
        clusters = clusters_of(rows, self._layout)
        count = sum(cluster.rows for cluster in clusters)
        row_bytes = _row_bytes(planned) or size / max(count, 1)
        return NewRows(rows, clusters, count, row_bytes)

    def _copied_rows(
        self, insert: AnalyzedInsert, source: OpenSource, planned: Sequence[PlannedFile]
    ) -> NewRows | None:
        """The rows of a table or of files whose columns are copied as they are, in one pass."""
        columns = insert.copied
        # Values of CHAR columns get their blanks in the frame.
        if columns is None or noted_lengths(source.frame.schema):
            return None
        if not self._may_be_one_pass(insert):
            return None
        if source.table is not None:
            return self._rows_of_table(insert, source.table, columns, planned)
        if source.landed is not None:
            names = source.frame.columns
            stored = [names[index] for index in columns.values()]
            keys = [names[columns[name]] for name in self._layout.cluster_by]
            return self._spilled_rows(insert, source.landed, stored, keys, planned)
        if source.files is None:
            return None
        files = copied_files(self.spark, source.files, source.frame, source.place)
        return self._rows_of_files(insert, files, columns, planned) if files else None

    def _rows_of_table(
        self,
        insert: AnalyzedInsert,
        table: TableHandle,
        columns: Mapping[str, int],
        planned: Sequence[PlannedFile],
    ) -> NewRows | None:
        scan, files = self.connector.scan, self.connector.metadata.plan_files(table)
        names = {name: table.column_names[index] for name, index in columns.items()}
        keys = [names[name] for name in self._layout.cluster_by]
        rows = scan.arrow_rows(self.spark, table, files, list(names.values()))
        if rows is None:
            return None
        known = known_clusters(rows, files, keys)
        found = known or self._counted(scan.arrow_rows(self.spark, table, files, keys))
        row_bytes = _row_bytes(planned) or _row_bytes(files)
        expected = frozenset(each.key for each in known.clusters) if known else None
        return self._in_one_pass(insert, rows, found, row_bytes, expected)

    def _rows_of_files(
        self,
        insert: AnalyzedInsert,
        files: CopiedFiles,
        columns: Mapping[str, int],
        planned: Sequence[PlannedFile],
    ) -> NewRows | None:
        tasks = self._tasks(files.byte_size)
        keys = files.rows([columns[name] for name in self._layout.cluster_by], tasks)
        row_bytes = _row_bytes(planned) or files.byte_size / max(files.row_count, 1)
        rows = files.rows(list(columns.values()), tasks)
        return self._in_one_pass(insert, rows, self._counted(keys), row_bytes)

    def _spilled_rows(
        self,
        insert: AnalyzedInsert,
        kept: MaterializedSource,
        columns: Sequence[str],
        keys: Sequence[str],
        planned: Sequence[PlannedFile],
    ) -> NewRows | None:
        """The rows of a materialised source, if one pass does it.

        ``columns`` of it are those of the table, ``keys`` those of the layout.
        """
        if not self._may_be_one_pass(insert):
            return None
        size = kept.byte_size // _COMPRESSION
        tasks = self._tasks(size)
        filesystem = self.connector.storage.filesystem
        rows = spilled_rows(kept, filesystem, columns, tasks)
        found = self._counted(spilled_rows(kept, filesystem, keys, tasks))
        row_bytes = _row_bytes(planned) or size / max(kept.row_count, 1)
        return self._in_one_pass(insert, rows, found, row_bytes)

    def _in_one_pass(
        self,
        insert: AnalyzedInsert,
        rows: ArrowRows,
        found: TaskClusters | None,
        row_bytes: float,
        expected: frozenset[Partition] | None = None,
    ) -> NewRows | None:
        """``rows``, if that makes hardly more files than clustering would."""
        if found is None or not found.is_good(self._file_size(row_bytes)):
            return None
        copied = CopiedRows(rows, tuple(insert.values), self._layout.cluster_by, expected)
        count = sum(cluster.rows for cluster in found.clusters)
        return NewRows(copied, found.clusters, count, row_bytes)

    @property
    def _layout(self) -> WriteLayout:
        return self.connector.metadata.insert_layout(self.table)

    def _may_be_one_pass(self, insert: AnalyzedInsert) -> bool:
        return not insert.order_by and self._layout.derived is None

    def _tasks(self, size: int) -> int:
        """How many tasks write so many bytes: one for each file, no core idle."""
        cores: int = self.spark.sparkContext.defaultParallelism
        return max(cores, size // self.options.target_file_size)

    def _counted(self, keys: ArrowRows | None) -> TaskClusters | None:
        """The clusters by task of rows whose ``keys`` are those of the layout."""
        declared = {column.name: column.type for column in self.table.columns}
        types = [frame_type(declared[name]) for name in self._layout.cluster_by]
        return None if keys is None else task_clusters(self.spark, keys, types)

    def _file_size(self, row_bytes: float) -> FileSize:
        return FileSize(
            row_bytes=row_bytes,
            target=self.options.target_file_size,
            parallelism=self.spark.sparkContext.defaultParallelism,
        )

    def _require_rows(self, new: NewRows | None) -> None:
        spec = self.spec
        if not isinstance(spec, InsertOverwriteSpec) or spec.mode != "table" or spec.allow_empty:
            return
        if new is not None and not new.clusters:
            raise DataError(
                ErrorCode.SOURCE_EMPTY,
                f"The source has no rows, so nothing would be left of {self.table.name}.",
                "Set allow_empty to clear the table.",
            )

    def _write(
        self,
        insert: AnalyzedInsert | None,
        new: NewRows | None,
        replacement: Replacement,
        replaced: Sequence[PlannedFile],
        metrics: Metrics,
    ) -> StatementOutcome:
        partitions = new.partitions(len(self.table.partition_keys)) if new else []

        # What others put beside the new rows is a conflict under either isolation.
        reads_all = self.reads_itself and self.options.isolation != "snapshot"

        def region(files: Sequence[PlannedFile]) -> Sequence[PlannedFile]:
            return files if reads_all else replacement.replaced(files, partitions)

        write = MergeWrite(
            operation=self.operation,
            files=(),
            assigned_columns=(),
            on_columns=(),
            target_file_size=self.options.target_file_size,
            region=region,
            overwrites=not isinstance(self.spec, InsertIntoSpec),
            dry_run=self.dry_run,
        )
        handle = self.begin(write)
        with self.writing(handle), self.progress.phase("write"):
            reports = self._stored(insert, new, handle) if insert and new else []
        added = [each for report in reports for each in report.fragments]
        self.progress.say(f"{len(added)} files written")
        commit = OverwriteCommit(self, handle, replacement, partitions, reports, metrics)
        if self.dry_run:
            return commit.previewed(replaced)
        with self.progress.phase("commit"):
            outcome = commit.published(replaced)
        self.progress.say(f"snapshot {outcome.snapshot_id} committed")
        return outcome

    def _stored(
        self, insert: AnalyzedInsert, new: NewRows, handle: MergeHandle
    ) -> list[TaskReport]:
        if not new.clusters:
            return []
        not_null = self.required_columns
        if isinstance(new.rows, CopiedRows):
            return written(self.spark, InsertPass(new.rows, handle.sinks, not_null))
        size = self._file_size(new.row_bytes)
        rows = distribute(new.rows, new.clusters, self._layout, insert.order_by, size)
        writer = InsertWriter(handle.sinks, not_null, tuple(rows.columns))
        stored = map_in_arrow(by_position(rows), writer, REPORT_SCHEMA)
        return [TaskReport.from_json(row["report"]) for row in stored.collect()]


def _row_bytes(files: Sequence[PlannedFile]) -> float:
    """How many bytes a row of ``files`` takes; 0 without rows."""
    rows = sum(file.row_count for file in files)
    return sum(file.size for file in files) / rows if rows else 0.0
