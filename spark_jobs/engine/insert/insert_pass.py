"""INSERT in one pass: rows that stand in files as they will be stored pass the JVM by.

The tasks that read a table or a materialised source write the new files, so a row is decoded once
and never shuffled. That is right where it makes hardly more files than clustering would: each
task's rows are counted by partition before, and few partitions meet in a task.

Imported by executors: nothing here needs a table library.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, LongType, StructField, StructType

from spark_jobs.engine.insert.insert_writer import change_rows, require_not_null
from spark_jobs.engine.runtime.spill import SpillReader
from spark_jobs.engine.runtime.tasks import task_key
from spark_jobs.engine.write.change_writer import REPORT_SCHEMA, TaskReport
from spark_jobs.engine.write.clustering import Cluster, FileSize
from spark_jobs.engine.write.task_sinks import task_sinks
from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.spi.arrow_tasks import ScanTasks, map_tasks
from spark_jobs.spi.connector import ArrowRows
from spark_jobs.spi.packing import scan_tasks

if TYPE_CHECKING:
    from spark_jobs.engine.source.materialized import MaterializedSource
    from spark_jobs.spi.sinks import MergeSink, MergeSinkFactory
    from spark_jobs.spi.tables import ColumnRange, PlannedFile

# Open files of a task, and how many more files than clustering would write are accepted.
_MOST_CLUSTERS = 4
_MOST_FILES = 2


@dataclass(frozen=True, slots=True)
class TaskClusters:
    """The rows of each partition that each task will read."""

    rows: dict[tuple[int, tuple[Any, ...]], int]

    @property
    def clusters(self) -> list[Cluster]:
        """The partitions that occur."""
        counts: Counter[tuple[Any, ...]] = Counter()
        for (_, key), count in self.rows.items():
            counts[key] += count
        return [Cluster(key, 0, count) for key, count in counts.items()]

    def is_good(self, size: FileSize) -> bool:
        """Whether writing where rows are read makes few files and keeps all cores busy."""
        clusters = self.clusters
        wanted = sum(size.slices(each.rows, len(clusters)) for each in clusters)
        by_task = Counter(task for task, _ in self.rows)
        return (
            len(self.rows) <= _MOST_FILES * wanted
            and len(by_task) >= min(size.parallelism, wanted)
            and max(by_task.values(), default=0) <= _MOST_CLUSTERS
        )


def known_clusters(
    rows: ArrowRows, files: Sequence[PlannedFile], columns: Sequence[str]
) -> TaskClusters | None:
    """The clusters by task, where each of ``files`` has one value in each of ``columns``.

    None where statistics do not tell that.
    """
    counts: Counter[tuple[int, tuple[Any, ...]]] = Counter()
    by_ordinal = {file.ordinal: file for file in files}
    for task, ordinals in enumerate(rows.files):
        for file in map(by_ordinal.__getitem__, ordinals):
            ranges = [file.ranges.get(name) for name in columns]
            if not all(each is not None and _is_one_value(each) for each in ranges):
                return None
            counts[task, tuple(each.minimum for each in ranges if each)] += file.live_row_count
    return TaskClusters({key: count for key, count in counts.items() if count})


def _is_one_value(known: ColumnRange) -> bool:
    # Of these types alone: bounds of texts may be cut, those of floating point leave out NaN.
    is_exact = isinstance(known.minimum, int | date) and not isinstance(known.minimum, datetime)
    return is_exact and known.minimum == known.maximum and known.null_count == 0


def task_clusters(spark: SparkSession, keys: ArrowRows, types: Sequence[DataType]) -> TaskClusters:
    """Count the rows of ``keys``, which has the partition columns of these types, by task."""
    fields = [StructField(f"c{i}", kind) for i, kind in enumerate(types)]
    schema = StructType([*fields, StructField("rows", LongType())])
    counted = map_tasks(spark, len(keys.files), _ClusterCount(keys, len(types)), schema)
    found = counted.withColumn("task", F.spark_partition_id()).collect()
    rows: Counter[tuple[int, tuple[Any, ...]]] = Counter()
    for row in found:
        rows[row["task"], tuple(row[: len(types)])] += row["rows"]
    return TaskClusters(dict(rows))


def spilled_rows(
    source: MaterializedSource,
    filesystem: pafs.FileSystem,
    columns: Sequence[str],
    tasks: int,
) -> ArrowRows:
    """``columns`` of a source's files, which at most so many tasks read."""
    paths = list(source.files)
    sizes = dict(enumerate(source.files.values()))
    groups = tuple(map(tuple, scan_tasks(sizes, tasks)))
    files = tuple(tuple(paths[ordinal] for ordinal in group) for group in groups)
    names = tuple(source.stored_names[name] for name in columns)
    return ArrowRows(ScanTasks(SpillReader(filesystem, names), files), groups)


def written(spark: SparkSession, writer: InsertPass) -> list[TaskReport]:
    """Store all rows; the tasks' reports."""
    reports = map_tasks(spark, len(writer.copied.rows.files), writer, REPORT_SCHEMA)
    return [TaskReport.from_json(row["report"]) for row in reports.collect()]


@dataclass(frozen=True, slots=True)
class _ClusterCount:
    rows: ArrowRows
    keys: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in self.rows.function(batches):
            if not batch.num_rows:
                continue
            columns = [f"c{i}" for i in range(self.keys)]
            if not columns:
                yield pa.RecordBatch.from_pydict({"rows": [batch.num_rows]})
                continue
            named = pa.Table.from_arrays(batch.columns[: self.keys], columns)
            counted = named.group_by(columns).aggregate([([], "count_all")])
            ordered = counted.select([*columns, "count_all"]).rename_columns([*columns, "rows"])
            yield from ordered.combine_chunks().to_batches()


@dataclass(frozen=True, slots=True)
class CopiedRows:
    """Rows of files that become rows of the table as they are.

    ``columns`` are the table columns that ``rows`` reads, ``cluster_by`` those that say which rows
    share a file. ``expected``: the values of ``cluster_by`` that statistics told of; None: rows
    were counted. Picklable.
    """

    rows: ArrowRows
    columns: tuple[str, ...]
    cluster_by: tuple[str, ...]
    expected: frozenset[tuple[Any, ...]] | None


@dataclass(frozen=True, slots=True)
class InsertPass:
    """The function of ``mapInArrow``: numbers of tasks in, one ``TaskReport`` out of each.

    ``not_null`` are table columns that take no NULL. Picklable.
    """

    copied: CopiedRows
    sinks: MergeSinkFactory
    not_null: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Store all rows of a task.

        Yields:
            As ``InsertWriter``.
        """
        report = TaskReport()
        names = list(self.copied.columns)
        by_cluster: dict[tuple[Any, ...], MergeSink] = {}
        with task_sinks(self.sinks) as sinks:
            for batch in self.copied.rows.function(batches):
                named = pa.RecordBatch.from_arrays(batch.columns[: len(names)], names)
                require_not_null(named, self.not_null)
                for key, part in _by_cluster(named, self.copied.cluster_by):
                    if key not in by_cluster:
                        self._require_expected(key)
                        by_cluster[key] = sinks.open(f"{task_key()}-{len(by_cluster)}")
                    by_cluster[key].store_merged_rows(change_rows(part))
                report.inserted += batch.num_rows
            report.fragments = sinks.finish()
        if by_cluster:
            yield report.to_batch()

    def _require_expected(self, key: tuple[Any, ...]) -> None:
        expected = self.copied.expected
        if expected is not None and key not in expected:
            found = dict(zip(self.copied.cluster_by, key, strict=True))
            raise CatalogError(
                ErrorCode.DATA_FILE_UNREADABLE,
                f"The source has rows with {found}, which the statistics of its files exclude.",
                "The source's files have wrong statistics: write them again.",
            )


def _by_cluster(
    batch: pa.RecordBatch, cluster_by: Sequence[str]
) -> Iterator[tuple[tuple[Any, ...], pa.RecordBatch]]:
    """The rows of each cluster of a batch."""
    if not batch.num_rows:
        return
    codes = np.zeros(batch.num_rows, dtype=np.int64)
    for name in cluster_by:
        encoded = batch.column(name).dictionary_encode(null_encoding="encode")
        pairs = codes * (len(encoded.dictionary) + 1) + encoded.indices.to_numpy()
        codes = np.unique(pairs, return_inverse=True)[1]
    for code in np.unique(codes):
        chosen = np.flatnonzero(codes == code)
        part = batch if len(chosen) == batch.num_rows else batch.take(pa.array(chosen))
        yield tuple(part.column(name)[0].as_py() for name in cluster_by), part
