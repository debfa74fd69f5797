"""How many rows Spark gives to Python at once, where columns have lists or maps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from spark_jobs.engine.runtime.session import fixed_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

_ROWS_PER_BATCH: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
_MOST_ROWS: Final = 250


@contextmanager
def list_batches(frame: DataFrame) -> Iterator[None]:
    """Run a block, an action on ``frame``, with small Arrow batches if a column has lists or maps.

    Since 4.1, Spark measures a batch after each row. For a column of lists, that walks over all
    rows since the last that has one, so the time grows with the square of the batch where most
    are NULL.
    """
    spark = frame.sparkSession
    asked = int(spark.conf.get(_ROWS_PER_BATCH) or 0)
    if 0 < asked <= _MOST_ROWS or not any(_has_list(each.dataType) for each in frame.schema):
        yield
        return
    with fixed_settings(spark, {_ROWS_PER_BATCH: str(_MOST_ROWS)}):
        yield


def _has_list(kind: DataType) -> bool:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType):
        return any(_has_list(each.dataType) for each in kind)
    return isinstance(kind, (ArrayType, MapType))
