"""The count of row pairs that ON joined, taken during the join, and whether it is exact.

Spark adds up what its tasks observe. When an executor is lost, tasks whose output is lost run again
and count again. So the tasks are counted too, both all of them and the distinct partitions.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.merge.cases import MATCHED
from spark_jobs.engine.runtime.query_status import observed_metric
from spark_jobs.spi import rows

_OBSERVATION: Final = "merge_join"
_TASK: Final = f"{rows.RESERVED_PREFIX}task"
# monotonically_increasing_id numbers a partition's rows below this.
_ROWS_OF_A_PARTITION: Final = 1 << 33
_COUNTED_TWICE: Final = -1


def observed(joined: DataFrame) -> DataFrame:
    """``joined``, which has ``__merge_matched``, with an observation that counts matched rows."""
    is_first = F.monotonically_increasing_id() % F.lit(_ROWS_OF_A_PARTITION) == 0
    marked = joined.withColumn(_TASK, F.when(is_first, F.spark_partition_id()))
    is_exact = F.count(_TASK) == F.size(F.collect_set(_TASK))
    matched = F.when(is_exact, F.count(F.when(F.col(MATCHED), 1))).otherwise(_COUNTED_TWICE)
    return marked.observe(_OBSERVATION, matched.cast("bigint").alias("matched")).drop(_TASK)


def observed_matches(evaluated: DataFrame) -> int | None:
    """The matched rows that ``observed`` counted below an evaluated frame.

    None if some were counted twice.
    """
    matched = observed_metric(evaluated, _OBSERVATION)
    return None if matched == _COUNTED_TWICE else matched
