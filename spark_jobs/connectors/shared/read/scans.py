"""Which tasks of a scan with pyarrow read which files. Driver only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from spark_jobs.packing import scan_tasks
from spark_jobs.spi.arrow_rows import ArrowRows
from spark_jobs.spi.arrow_tasks import PartReader, ScanTasks
from spark_jobs.spi.tables import PlannedFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Part = TypeVar("Part")

TASKS_PER_CORE: Final = 2
_BYTES_PER_TASK: Final = 2**30


def arrow_rows(
    spark: SparkSession | None,
    files: Sequence[PlannedFile],
    reader: PartReader[Part],
    parts: Mapping[int, Part],
    tasks_per_core: int = TASKS_PER_CORE,
) -> ArrowRows:
    """What ``reader`` reads of ``files``; ``parts`` are by ordinal. Much data gets more tasks."""
    sizes = {each.ordinal: each.size for each in files}
    tasks = 1 if spark is None else tasks_per_core * spark.sparkContext.defaultParallelism
    packed = scan_tasks(sizes, max(tasks, sum(sizes.values()) // _BYTES_PER_TASK))
    scan = ScanTasks(reader, tuple(tuple(parts[each] for each in task) for task in packed))
    return ArrowRows(scan, tuple(map(tuple, packed)))
