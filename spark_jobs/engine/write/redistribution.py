"""Redistribution: all changes of one file reach one sink task, in the order that layouts require.

The number of partitions is explicit, so adaptive execution can neither split a file over two tasks
nor merge tasks. Only changes are shuffled, never unchanged rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.contract.sql_text import quote
from spark_jobs.engine.runtime.arrow_batches import arrow_batches
from spark_jobs.engine.runtime.sql_text import named
from spark_jobs.engine.write.derivation import with_derived_columns
from spark_jobs.packing import packed
from spark_jobs.spi import rows
from spark_jobs.spi.writes import RowOrder, WriteLayout

SPREAD_SEED = "__merge_spread_seed"
_TASK = "__merge_task"
_IS_INSERT = f"{rows.OPERATION} = {rows.INSERT}"
_BYTES_PER_TASK = 2**30
_MOST_TASKS = 10_000
# So many that clusters, which are not cut, spread evenly over the cores.
_TASKS_PER_CORE = 8
_32_BITS = 2**32 - 1


@dataclass(frozen=True, slots=True)
class WriteSize:
    """What a statement may have to write, estimated before it runs.

    ``file_sizes`` are those of the files that it reads, in bytes by ordinal. ``new_rows`` is the
    maximum number of new rows, each of about ``new_row_bytes``. ``target_file_size`` is in bytes;
    ``parallelism`` is the number of available cores; each gets ``tasks_per_core`` sink tasks.
    """

    file_sizes: Mapping[int, int]
    new_rows: int
    new_row_bytes: int
    target_file_size: int
    parallelism: int
    tasks_per_core: int = 2

    def files_for(self, new_rows: int) -> int:
        """The number of target-size files that ``new_rows`` fill, at least one."""
        return max(1, math.ceil(new_rows * self.new_row_bytes / self.target_file_size))

    @property
    def sink_tasks(self) -> int:
        """The number of sink tasks: some per core, or more so that each has at most 1 GiB of files.

        At most one per old or new file, and at most 10,000: a task then writes tiny files one
        after another.
        """
        new_files = self.files_for(self.new_rows)
        file_bytes = sum(self.file_sizes.values())
        wanted = max(
            self.tasks_per_core * self.parallelism,
            math.ceil(file_bytes / _BYTES_PER_TASK),
            new_files,
        )
        return min(len(self.file_sizes) + new_files, wanted, _MOST_TASKS)


def redistribute(
    changes: DataFrame,
    update_layout: WriteLayout | None,
    insert_layout: WriteLayout,
    size: WriteSize,
) -> DataFrame:
    """``changes`` clustered over ``size.sink_tasks`` tasks and sorted within each.

    A task sees its UPDATE and DELETE rows first, in the order of ``update_layout``, then its INSERT
    rows in the order of ``insert_layout``, and of its ``row_order``. New rows that
    ``insert_layout`` clusters together spread over as many tasks as they fill files of the target
    size. Its derived columns are added. Without ``update_layout``, ``insert_layout`` is for all
    rows.
    """
    if update_layout is None:
        return _in_one_layout(changes, insert_layout, size)
    if insert_layout.derived is not None:
        changes = with_derived_columns(changes, insert_layout.derived)
    insert_key = _hash("'insert'", *_columns(insert_layout.cluster_by))
    if size.files_for(size.new_rows) > 1:
        insert_key = _spread(changes.where(_IS_INSERT), insert_key, size)
    key = f"IF({_IS_INSERT}, {insert_key}, {_update_key(update_layout, size)})"
    clustered = changes.selectExpr("*", named(key, _TASK))
    order = [_IS_INSERT, *_columns(update_layout.order_by), *_columns(insert_layout.order_by)]
    tasks = clustered.repartition(size.sink_tasks, _TASK)
    tasks, keys = with_sort_keys(tasks, insert_layout.row_order)
    redistributed = tasks.sortWithinPartitions(*map(F.expr, order), *keys)
    return redistributed.drop(_TASK, SPREAD_SEED)


def with_sort_keys(new_rows: DataFrame, order: RowOrder | None) -> tuple[DataFrame, list[Column]]:
    """``new_rows`` with the columns that ``order`` derives, and what Spark sorts them by."""
    if order is None:
        return new_rows, []
    if order.derived is not None:
        new_rows = with_derived_columns(new_rows, order.derived, of_all=True)
    keys = []
    for key in order.keys:
        direction = "asc" if key.ascending else "desc"
        nulls = "first" if key.nulls_first else "last"
        keys.append(getattr(F.col(quote(key.column)), f"{direction}_nulls_{nulls}")())
    return new_rows, keys


def _in_one_layout(changes: DataFrame, layout: WriteLayout, size: WriteSize) -> DataFrame:
    """All rows of a cluster in one task; of rows that are equal in order, INSERT rows come last."""
    if layout.derived is not None:
        changes = with_derived_columns(changes, layout.derived, of_all=True)
    order = [*_columns(layout.order_by), _IS_INSERT]
    tasks = max(size.sink_tasks, _TASKS_PER_CORE * size.parallelism)
    clustered = changes.repartition(tasks, *map(F.expr, _columns(layout.cluster_by)))
    return clustered.sortWithinPartitions(*map(F.expr, order)).drop(SPREAD_SEED)


def _update_key(layout: WriteLayout, size: WriteSize) -> str:
    if layout.file_ordinal is None or not size.file_sizes:
        return _hash("'update'", *_columns(layout.cluster_by))
    keys = keys_of_partitions(size.sink_tasks)
    tasks = packed(size.file_sizes, size.sink_tasks)
    by_ordinal = [str(keys[tasks.get(n, 0)]) for n in range(max(tasks) + 1)]
    # One constant in the plan, whatever the number of files.
    literal = f"CAST(split('{','.join(by_ordinal)}', ',') AS ARRAY<INT>)"
    return f"get({literal}, {_path(layout.file_ordinal)})"


def keys_of_partitions(partitions: int) -> list[int]:
    """For each partition, an integer that Spark's hash partitioning assigns to it."""
    keys: dict[int, int] = {}
    key = 0
    while len(keys) < partitions:
        keys.setdefault(_murmur3(key) % partitions, key)
        key += 1
    return [keys[partition] for partition in range(partitions)]


def _murmur3(number: int) -> int:
    """Spark's hash of an ``int``: Austin Appleby's MurmurHash3 (x86, 32 bits) with seed 42."""
    mixed = _rotated(number * 0xCC9E2D51, 15) * 0x1B873593
    result = (_rotated(42 ^ (mixed & _32_BITS), 13) * 5 + 0xE6546B64) & _32_BITS
    result ^= 4
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        result = ((result ^ result >> shift) * factor) & _32_BITS
    result ^= result >> 16
    return result - 2**32 if result >= 2**31 else result


def _rotated(number: int, bits: int) -> int:
    number &= _32_BITS
    return (number << bits | number >> 32 - bits) & _32_BITS


def _spread(inserts: DataFrame, insert_key: str, size: WriteSize) -> str:
    """``insert_key``, split for clusters whose new rows fill more than one file."""
    with arrow_batches(inserts):
        counts = inserts.groupBy(F.expr(named(insert_key, "key"))).count().collect()
    spread = [(row["key"], size.files_for(row["count"])) for row in counts]
    branches = " ".join(f"WHEN {key} THEN {files}" for key, files in spread if files > 1)
    chosen = f"CASE {insert_key} {branches} ELSE 1 END" if branches else "1"
    return _hash(insert_key, f"pmod({SPREAD_SEED}, {chosen})")


def _hash(*values: str) -> str:
    return f"hash({', '.join(values)})"


def _columns(names: Iterable[str]) -> list[str]:
    return [_path(name) for name in names]


def _path(name: str) -> str:
    is_row_id_field = name.startswith(f"{rows.ROW_ID}.")
    return ".".join(map(quote, name.split("."))) if is_row_id_field else quote(name)
