"""Distributes new rows to sink tasks: clustered by partition, in as many tasks as they fill files.

Rows are counted by cluster (partition and bucket) before the shuffle. A cluster that fills several
files of the target size is cut into that many slices. Slices are packed into tasks by size, so that
small partitions share a task and big ones spread. A task with several clusters gets them one after
another, so that one file is open at a time. A row's slice depends only on its values, so a
repeated task gets the same rows.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import AtomicType

from spark_jobs.contract.sql_text import quote
from spark_jobs.engine.runtime.arrow_batches import arrow_batches
from spark_jobs.engine.runtime.instants import python_columns, python_value
from spark_jobs.engine.write.derivation import with_derived_columns
from spark_jobs.engine.write.redistribution import keys_of_partitions, with_sort_keys
from spark_jobs.packing import packed
from spark_jobs.spi import rows
from spark_jobs.spi.writes import WriteLayout, beyond_years

_TASK = "__merge_task"
_COUNT = "__merge_count"
_HASH = "__merge_hash"
_BYTES_PER_TASK = 2**30
_MOST_TASKS = 10_000
_SMALLEST_SHARE = 4


@dataclass(frozen=True, slots=True)
class Cluster:
    """Rows with equal values ``key`` in the columns that a layout clusters by."""

    key: tuple[Any, ...]
    hash: int
    rows: int


@dataclass(frozen=True, slots=True)
class FileSize:
    """What decides how many tasks write a cluster.

    ``row_bytes`` is the approximate size of a row in a data file; ``target`` is the target file
    size in bytes; ``parallelism`` is the number of available cores. ``keeps_clusters`` is as in
    ``WriteLayout``.
    """

    row_bytes: float
    target: int
    parallelism: int
    keeps_clusters: bool = False

    def slices(self, row_count: int, clusters: int) -> int:
        """The number of tasks for ``row_count`` rows of one of ``clusters`` clusters.

        One per file; more if cores would idle, as long as each file still gets a quarter of the
        target size.
        """
        if self.keeps_clusters:
            return 1
        size = row_count * self.row_bytes
        files = math.ceil(size / self.target)
        idle = math.ceil(self.parallelism / clusters)
        return max(1, files, min(idle, int(size * _SMALLEST_SHARE / self.target)))


def with_layout_columns(new_rows: DataFrame, layout: WriteLayout) -> DataFrame:
    """``new_rows`` with the columns that the layout derives."""
    if layout.derived is None:
        return new_rows
    marked = new_rows.withColumn(rows.OPERATION, F.lit(rows.INSERT).cast("tinyint"))
    return with_derived_columns(marked, layout.derived).drop(rows.OPERATION)


def clusters_of(new_rows: DataFrame, layout: WriteLayout) -> list[Cluster]:
    """The clusters of ``new_rows``, counted by Spark.

    Raises:
        DataError: VALUE_NOT_STORABLE, a partition of a day that Python does not have.
    """
    columns = [F.col(quote(name)) for name in layout.cluster_by]
    if not columns:
        with arrow_batches(new_rows):
            count = new_rows.count()
        return [Cluster((), 0, count)] if count else []
    counted = new_rows.groupBy(*columns).agg(F.count(F.lit(1)).alias(_COUNT))
    hashed = counted.withColumn(_HASH, F.xxhash64(*columns))
    kinds = [field.dataType for field in hashed.schema][: len(columns)]
    try:
        with arrow_batches(new_rows):
            groups = hashed.select(*python_columns(hashed)).collect()
        keys = [tuple(map(python_value, row, kinds)) for row in groups]
    except (ValueError, OverflowError):
        raise beyond_years(layout.deciding_columns) from None
    return [Cluster(key, row[_HASH], row[_COUNT]) for key, row in zip(keys, groups, strict=True)]


def distribute(
    new_rows: DataFrame,
    clusters: Sequence[Cluster],
    layout: WriteLayout,
    order_by: Sequence[str],
    size: FileSize,
) -> DataFrame:
    """``new_rows`` in the tasks that write them, with the rows of a cluster together in each task.

    ``order_by`` sorts the rows of a cluster that are equal in the layout's ``row_order``: columns
    as SQL, with ASC or DESC.
    """
    placement = Placement.of(clusters, size)
    task = placement.task(layout.cluster_by, _seed(new_rows))
    placed = new_rows.withColumn(_TASK, task).repartition(placement.tasks, _TASK)
    placed, sort_keys = with_sort_keys(placed, layout.row_order)
    if placement.shares_tasks or sort_keys or order_by or layout.keeps_clusters:
        keys = [*(F.col(quote(name)) for name in layout.order_by), *sort_keys]
        placed = placed.sortWithinPartitions(*keys, *map(_sort_column, order_by))
    return placed.drop(_TASK)


def _seed(new_rows: DataFrame) -> Column:
    atomic = [f.name for f in new_rows.schema if isinstance(f.dataType, AtomicType)]
    return F.xxhash64(*(F.col(quote(name)) for name in atomic)) if atomic else F.lit(0)


@dataclass(frozen=True, slots=True)
class Placement:
    """A task for every row: its cluster's hash gives a slot, its seed one of the slot's slices.

    ``first`` and ``slices`` are a slot's first slice and number of slices. ``keys`` has, by slice,
    an integer that Spark's hash partitioning assigns to the slice's task. ``shares_tasks``: a task
    has several clusters.
    """

    tasks: int
    first: tuple[int, ...]
    slices: tuple[int, ...]
    keys: tuple[int, ...]
    shares_tasks: bool

    @classmethod
    def of(cls, clusters: Sequence[Cluster], size: FileSize) -> Placement:
        """The placement of clusters; those whose hashes share a slot are placed as one."""
        slots = 1 << (2 * len(clusters)).bit_length()
        by_slot: dict[int, list[Cluster]] = defaultdict(list)
        for cluster in clusters:
            by_slot[cluster.hash % slots].append(cluster)
        first, slices = [0] * slots, [1] * slots
        pieces: list[tuple[int, int]] = []
        for slot, members in sorted(by_slot.items()):
            row_count = sum(cluster.rows for cluster in members)
            first[slot], slices[slot] = len(pieces), size.slices(row_count, len(clusters))
            pieces += [(slot, row_count // slices[slot])] * slices[slot]
        total = sum(cluster.rows for cluster in clusters) * size.row_bytes
        wanted = max(2 * size.parallelism, math.ceil(total / _BYTES_PER_TASK))
        tasks = min(len(pieces), wanted, _MOST_TASKS)
        placed = packed({i: weight for i, (_, weight) in enumerate(pieces)}, tasks)
        keys = keys_of_partitions(tasks)
        met: dict[int, set[tuple[Any, ...]]] = defaultdict(set)
        for piece, (slot, _) in enumerate(pieces):
            met[placed[piece]].update(cluster.key for cluster in by_slot[slot])
        return cls(
            tasks=tasks,
            first=tuple(first),
            slices=tuple(slices),
            keys=tuple(keys[placed[piece]] for piece in range(len(pieces))),
            shares_tasks=any(len(each) > 1 for each in met.values()),
        )

    def task(self, cluster_by: Sequence[str], seed: Column) -> Column:
        """The column to repartition by; ``seed`` (bigint) chooses among a slot's slices."""
        columns = [F.col(quote(name)) for name in cluster_by]
        slot = F.lit(0)
        if columns:
            slot = F.pmod(F.xxhash64(*columns), F.lit(len(self.first))).cast("int")
        piece = _looked_up(self.first, slot)
        if max(self.slices) > 1:
            piece += F.pmod(seed, _looked_up(self.slices, slot)).cast("int")
        return _looked_up(self.keys, piece)


def _looked_up(numbers: Sequence[int], index: Column) -> Column:
    """``numbers[index]``; the numbers are one constant in the plan, however many there are."""
    literal = F.split(F.lit(",".join(map(str, numbers))), ",").cast("array<int>")
    return F.get(literal, index)


def _sort_column(text: str) -> Column:
    name, _, direction = text.rpartition(" ")
    return F.col(name).desc() if direction.upper() == "DESC" else F.col(name).asc()
