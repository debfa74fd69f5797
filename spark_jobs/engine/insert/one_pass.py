"""Which sources an INSERT copies in one pass: the tasks that read the rows write the files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow.parquet as pq

from spark_jobs.contract.inserts import InsertStatement
from spark_jobs.engine.analysis.char_columns import noted_lengths
from spark_jobs.engine.analysis.store_assignment import frame_type
from spark_jobs.engine.insert.insert_writer import CopiedRows
from spark_jobs.engine.insert.inserted_rows import AnalyzedInsert
from spark_jobs.engine.insert.new_rows import NewRows, file_size
from spark_jobs.engine.insert.partition_shares import Partition
from spark_jobs.engine.insert.task_clusters import TaskClusters, known_clusters, task_clusters
from spark_jobs.engine.runtime.spill import SpilledPart, SpillReader
from spark_jobs.engine.source.copied_files import CopiedFiles, copied_files
from spark_jobs.engine.source.materialized import MaterializedSource
from spark_jobs.engine.source.open_source import OpenSource
from spark_jobs.engine.write.statement_run import SparkRun
from spark_jobs.packing import scan_tasks
from spark_jobs.spi.arrow_rows import ArrowRows
from spark_jobs.spi.arrow_tasks import ScanTasks
from spark_jobs.spi.tables import TableHandle, row_bytes_of
from spark_jobs.spi.writes import WriteLayout, beyond_years

# The approximate ratio of a row's bytes as Arrow to its bytes in a data file.
COMPRESSION: Final = 4


@dataclass(frozen=True, slots=True)
class OnePass:
    """Rows of an INSERT that need no shuffle; every public method returns None if they need one.

    ``row_bytes`` is the average size of a row in the target's files, 0 if it has none.
    """

    run: SparkRun[InsertStatement]
    insert: AnalyzedInsert
    layout: WriteLayout
    row_bytes: float

    def copied(self, source: OpenSource) -> NewRows | None:
        """The rows of a table or of files whose columns are copied as they are."""
        columns = self.insert.copied
        # Values of CHAR columns are padded in the frame.
        if columns is None or noted_lengths(source.frame.schema) or not self._is_possible:
            return None
        if source.table is not None:
            return self._of_table(source, source.table, columns)
        if source.landed is not None:
            names = source.frame.columns
            stored = [names[index] for index in columns.values()]
            keys = [names[columns[name]] for name in self.layout.cluster_by]
            return self.materialized(source.landed, stored, keys)
        if source.files is None:
            return None
        files = copied_files(self.run.spark, source.files, source.frame, source.location)
        return self._of_files(files, columns) if files else None

    def materialized(
        self, source: MaterializedSource, columns: Sequence[str], keys: Sequence[str]
    ) -> NewRows | None:
        """The rows of a materialised source.

        ``columns`` are its columns in the order of the table's columns, ``keys`` those that the
        layout clusters by.
        """
        if not self._is_possible:
            return None
        size = source.byte_size // COMPRESSION
        tasks = self._tasks(size)
        rows = _spilled_rows(source, columns, tasks)
        found = self._counted(_spilled_rows(source, keys, tasks))
        row_bytes = self.row_bytes or size / max(source.row_count, 1)
        return self._accepted(rows, found, row_bytes)

    def _of_table(
        self, source: OpenSource, table: TableHandle, columns: Mapping[str, int]
    ) -> NewRows | None:
        connector, spark = source.connector or self.run.connector, self.run.spark
        files = connector.metadata.plan_files(table)
        names = {name: table.column_names[index] for name, index in columns.items()}
        keys = [names[name] for name in self.layout.cluster_by]
        rows = connector.scan.arrow_rows(spark, table, files, list(names.values()))
        if rows is None:
            return None
        known = known_clusters(rows, files, keys)
        found = known or self._counted(connector.scan.arrow_rows(spark, table, files, keys))
        row_bytes = self.row_bytes or row_bytes_of(files)
        expected = frozenset(each.key for each in known.clusters) if known else None
        return self._accepted(rows, found, row_bytes, expected)

    def _of_files(self, files: CopiedFiles, columns: Mapping[str, int]) -> NewRows | None:
        tasks = self._tasks(files.byte_size)
        keys = files.rows([columns[name] for name in self.layout.cluster_by], tasks)
        row_bytes = self.row_bytes or files.byte_size / max(files.row_count, 1)
        rows = files.rows(list(columns.values()), tasks)
        return self._accepted(rows, self._counted(keys), row_bytes)

    def _accepted(
        self,
        rows: ArrowRows,
        found: TaskClusters | None,
        row_bytes: float,
        expected: frozenset[Partition] | None = None,
    ) -> NewRows | None:
        """``rows``, if writing them in one pass makes hardly more files than clustering would."""
        if found is None or not found.is_good(file_size(self.run, row_bytes)):
            return None
        copied = CopiedRows(rows, tuple(self.insert.values), self.layout.cluster_by, expected)
        count = sum(cluster.rows for cluster in found.clusters)
        return NewRows(copied, found.clusters, count, row_bytes)

    @property
    def _is_possible(self) -> bool:
        is_free = self.layout.derived is None and self.layout.row_order is None
        return is_free and not self.insert.order_by

    def _tasks(self, size: int) -> int:
        """The number of tasks that write ``size`` bytes: one per file, at least one per core."""
        cores: int = self.run.spark.sparkContext.defaultParallelism
        return max(cores, size // self.run.options.target_file_size)

    def _counted(self, keys: ArrowRows | None) -> TaskClusters | None:
        """The clusters by task; ``keys`` reads the columns that the layout clusters by.

        Raises:
            DataError: VALUE_NOT_STORABLE, a partition of a day that Python does not have.
        """
        if keys is None:
            return None
        declared = {column.name: column.type for column in self.run.table.columns}
        types = [frame_type(declared[name]) for name in self.layout.cluster_by]
        try:
            return task_clusters(self.run.spark, keys, types)
        except (ValueError, OverflowError):
            raise beyond_years(self.layout.deciding_columns) from None


def _spilled_rows(
    source: MaterializedSource,
    columns: Sequence[str],
    tasks: int,
) -> ArrowRows:
    """``columns`` of a source's files, read by at most ``tasks`` tasks."""
    parts = _parts(source, tasks)
    groups = scan_tasks(dict(enumerate(parts.values())), tasks)
    by_ordinal = list(parts)
    of_tasks = tuple(tuple(by_ordinal[ordinal] for ordinal in group) for group in groups)
    names = tuple(source.stored_names[name] for name in columns)
    reader = SpillReader(source.filesystem, names)
    return ArrowRows(ScanTasks(reader, of_tasks), tuple(map(tuple, groups)))


def _parts(source: MaterializedSource, tasks: int) -> dict[SpilledPart, int]:
    """The files of a source, or their row groups if there are too few files, with their bytes."""
    if len(source.files) >= tasks:
        return {SpilledPart(path): size for path, size in source.files.items()}
    parts = {}
    for path, size in source.files.items():
        footer = pq.read_metadata(path, filesystem=source.filesystem)
        for number in range(footer.num_row_groups):
            share = footer.row_group(number).num_rows / max(footer.num_rows, 1)
            parts[SpilledPart(path, (number,))] = int(size * share)
    return parts
