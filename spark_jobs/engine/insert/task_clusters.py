"""The partitions in each task that reads an INSERT's rows: known from statistics, or counted.

Imported by executors: nothing here needs a table library.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, LongType, StructField, StructType

from spark_jobs.engine.write.clustering import Cluster, FileSize
from spark_jobs.spi.arrow_rows import ArrowRows
from spark_jobs.spi.arrow_tasks import map_tasks

if TYPE_CHECKING:
    from spark_jobs.spi.tables import ColumnRange, PlannedFile

# The accepted number of open files per task, and of files per file that clustering would write.
MOST_CLUSTERS = 4
_MOST_FILES = 2


@dataclass(frozen=True, slots=True)
class TaskClusters:
    """The number of rows that tasks will read, by task and partition."""

    rows: dict[tuple[int, tuple[Any, ...]], int]

    @property
    def clusters(self) -> list[Cluster]:
        """The partitions, with the rows of all tasks."""
        counts: Counter[tuple[Any, ...]] = Counter()
        for (_, key), count in self.rows.items():
            counts[key] += count
        return [Cluster(key, 0, count) for key, count in counts.items()]

    def is_good(self, size: FileSize) -> bool:
        """Whether writing in the tasks that read makes few files and keeps the cores busy."""
        clusters = self.clusters
        wanted = sum(size.slices(each.rows, len(clusters)) for each in clusters)
        by_task = Counter(task for task, _ in self.rows)
        return (
            len(self.rows) <= _MOST_FILES * wanted
            and len(by_task) >= min(size.parallelism, wanted)
            and max(by_task.values(), default=0) <= MOST_CLUSTERS
        )


def known_clusters(
    rows: ArrowRows, files: Sequence[PlannedFile], columns: Sequence[str]
) -> TaskClusters | None:
    """The clusters by task, if each of ``files`` has one value in each of ``columns``.

    None if statistics do not prove that.
    """
    counts: Counter[tuple[int, tuple[Any, ...]]] = Counter()
    by_ordinal = {file.ordinal: file for file in files}
    for task, ordinals in enumerate(rows.files):
        for file in map(by_ordinal.__getitem__, ordinals):
            ranges = [file.known(name) for name in columns]
            if not file.has_exact_count or not all(map(_is_one_value, ranges)):
                return None
            counts[task, tuple(each.minimum for each in ranges)] += file.live_row_count
    return TaskClusters({key: count for key, count in counts.items() if count})


def _is_one_value(known: ColumnRange) -> bool:
    # Only for these types: bounds of strings may be truncated, those of floats leave out NaN.
    is_exact = isinstance(known.minimum, int | date) and not isinstance(known.minimum, datetime)
    return is_exact and known.minimum == known.maximum and known.null_count == 0


def task_clusters(spark: SparkSession, keys: ArrowRows, types: Sequence[DataType]) -> TaskClusters:
    """Count the rows of ``keys`` by task; its partition columns have ``types``."""
    fields = [StructField(f"c{i}", kind) for i, kind in enumerate(types)]
    schema = StructType([*fields, StructField("rows", LongType())])
    counted = map_tasks(spark, len(keys.files), _ClusterCount(keys, len(types)), schema)
    found = counted.withColumn("task", F.spark_partition_id()).collect()
    rows: Counter[tuple[int, tuple[Any, ...]]] = Counter()
    for row in found:
        rows[row["task"], tuple(row[: len(types)])] += row["rows"]
    return TaskClusters(dict(rows))


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
