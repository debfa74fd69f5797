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
from spark_jobs.engine.runtime.sql_text import named
from spark_jobs.spi import rows

_OBSERVATION: Final = "merge_join"
_TASK: Final = f"{rows.RESERVED_PREFIX}task"
# monotonically_increasing_id numbers a partition's rows below this.
_ROWS_OF_A_PARTITION: Final = 1 << 33
_COUNTED_TWICE: Final = -1


def observed(joined: DataFrame) -> DataFrame:
    """``joined``, which has ``__merge_matched``, with an observation that counts matched rows."""
    is_first = f"monotonically_increasing_id() % {_ROWS_OF_A_PARTITION} = 0"
    task = f"CASE WHEN {is_first} THEN spark_partition_id() END"
    is_exact = f"count({_TASK}) = size(collect_set({_TASK}))"
    matched = f"IF({is_exact}, count(CASE WHEN {MATCHED} THEN 1 END), {_COUNTED_TWICE})"
    metric = F.expr(named(f"CAST({matched} AS BIGINT)", "matched"))
    return joined.selectExpr("*", named(task, _TASK)).observe(_OBSERVATION, metric).drop(_TASK)


def observed_matches(evaluated: DataFrame) -> int | None:
    """The matched rows that ``observed`` counted below an evaluated frame.

    None if some were counted twice.
    """
    matched = observed_metric(evaluated, _OBSERVATION)
    return None if matched == _COUNTED_TWICE else matched
