"""The pairs of rows that ON joined, counted beside the join, and whether the count is exact.

Spark adds up what its tasks observed. When an executor is lost, tasks whose output went with it run
again, and count again. So the tasks are counted, too: in all, and each partition once.
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
# monotonically_increasing_id counts a partition's rows below this.
_ROWS_OF_A_PARTITION: Final = 1 << 33
_COUNTED_TWICE: Final = -1


def observed(joined: DataFrame) -> DataFrame:
    """``joined``, which has ``__merge_matched``, with its matched rows counted on the way."""
    is_first = F.monotonically_increasing_id() % F.lit(_ROWS_OF_A_PARTITION) == 0
    marked = joined.withColumn(_TASK, F.when(is_first, F.spark_partition_id()))
    is_exact = F.count(_TASK) == F.size(F.collect_set(_TASK))
    matched = F.when(is_exact, F.count(F.when(F.col(MATCHED), 1))).otherwise(_COUNTED_TWICE)
    return marked.observe(_OBSERVATION, matched.cast("bigint").alias("matched")).drop(_TASK)


def observed_matches(evaluated: DataFrame) -> int | None:
    """The matched rows of ``observed`` ones below a frame that has been evaluated.

    None: some were counted twice.
    """
    matched = observed_metric(evaluated, _OBSERVATION)
    return None if matched == _COUNTED_TWICE else matched
