"""Redistribution: all changes of one file meet in one sink task, in the order the layouts ask for.

The number of partitions is explicit, so adaptive execution can neither split a file over two tasks
nor merge tasks. Only changes travel, never unchanged rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.cases import SPREAD_SEED
from spark_jobs.engine.names import quote
from spark_jobs.spi import rows
from spark_jobs.spi.writes import WriteLayout

_TASK = "__merge_task"
_BYTES_PER_TASK = 2**30


@dataclass(frozen=True, slots=True)
class WriteSize:
    """What a statement may have to write, estimated before it runs.

    ``files`` and ``file_bytes`` of the target files that it reads; ``new_rows`` at most, each of
    about ``new_row_bytes``; ``target_file_size`` in bytes; ``parallelism``: cores at hand.
    """

    files: int
    file_bytes: int
    new_rows: int
    new_row_bytes: int
    target_file_size: int
    parallelism: int

    def files_for(self, new_rows: int) -> int:
        """How many target-size files ``new_rows`` fill, at least one."""
        return max(1, math.ceil(new_rows * self.new_row_bytes / self.target_file_size))

    @property
    def sink_tasks(self) -> int:
        """Sink tasks: enough for all cores twice over and for at most 1 GiB of files in each."""
        new_files = self.files_for(self.new_rows)
        wanted = max(2 * self.parallelism, math.ceil(self.file_bytes / _BYTES_PER_TASK), new_files)
        return min(self.files + new_files, wanted)


def redistribute(
    changes: DataFrame, update_layout: WriteLayout, insert_layout: WriteLayout, size: WriteSize
) -> DataFrame:
    """``changes`` clustered over ``size.sink_tasks`` tasks and sorted within each.

    A task sees its UPDATE and DELETE rows first, ordered as ``update_layout`` says, then its INSERT
    rows ordered as ``insert_layout`` says. New rows that ``insert_layout`` clusters together spread
    over as many tasks as they fill files of the target size.
    """
    is_insert = F.col(rows.OPERATION) == rows.INSERT
    insert_key = F.hash(F.lit("insert"), *_columns(insert_layout.cluster_by))
    if size.files_for(size.new_rows) > 1:
        insert_key = _spread(changes.where(is_insert), insert_key, size)
    update_key = F.hash(F.lit("update"), *_columns(update_layout.cluster_by))
    clustered = changes.withColumn(_TASK, F.when(is_insert, insert_key).otherwise(update_key))
    order = [is_insert, *_columns(update_layout.order_by), *_columns(insert_layout.order_by)]
    redistributed = clustered.repartition(size.sink_tasks, _TASK).sortWithinPartitions(*order)
    return redistributed.drop(_TASK, SPREAD_SEED)


def _spread(inserts: DataFrame, insert_key: Column, size: WriteSize) -> Column:
    """``insert_key`` split for those clusters whose new rows fill more than one file."""
    counts = inserts.groupBy(insert_key.alias("key")).count().collect()
    spread = [(row["key"], size.files_for(row["count"])) for row in counts]
    chosen = F.lit(1)
    for key, files in spread:
        if files > 1:
            chosen = F.when(insert_key == key, F.lit(files)).otherwise(chosen)
    return F.hash(insert_key, F.pmod(F.col(SPREAD_SEED), chosen))


def _columns(names: Iterable[str]) -> list[Column]:
    return [F.col(_path(name)) for name in names]


def _path(name: str) -> str:
    is_row_id_field = name.startswith(f"{rows.ROW_ID}.")
    return ".".join(map(quote, name.split("."))) if is_row_id_field else quote(name)
