"""How many rows Spark gives to Python at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from spark_jobs.engine.runtime.session import fixed_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

_ROWS_PER_BATCH: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BYTES_PER_BATCH: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
# What Spark measures batches for by default, and what it does not measure them for.
_MEASURED: Final = "64MB"
_UNMEASURED: Final = str(2**31 - 1)
_MOST_ROWS: Final = 250
_MOST_UNMEASURED: Final = 4_000


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


@contextmanager
def row_batches(frame: DataFrame) -> Iterator[None]:
    """Run a block, an action on all rows of ``frame``, in batches that Spark does not measure.

    Since 4.1, Spark measures a batch after each row, which takes longer than filling it. Earlier
    versions make batches of 10,000 rows, whatever their size; 4,000 rows are small enough without
    a measure, unless there are binary values, lists or maps, or a cluster has set the size.
    """
    from pyspark.sql.types import BinaryType

    spark, kinds = frame.sparkSession, [each.dataType for each in frame.schema]
    is_plain = not any(_has(kind, BinaryType) or _has_list(kind) for kind in kinds)
    if not is_plain or spark.conf.get(_BYTES_PER_BATCH, _MEASURED) != _MEASURED:
        with list_batches(frame):
            yield
        return
    asked = int(spark.conf.get(_ROWS_PER_BATCH) or 0)
    most = min(asked, _MOST_UNMEASURED) if asked > 0 else _MOST_UNMEASURED
    with fixed_settings(spark, {_ROWS_PER_BATCH: str(most), _BYTES_PER_BATCH: _UNMEASURED}):
        yield


def _has(kind: DataType, wanted: type[DataType]) -> bool:
    from pyspark.sql.types import StructType

    if isinstance(kind, StructType):
        return any(_has(each.dataType, wanted) for each in kind)
    return isinstance(kind, wanted)


def _has_list(kind: DataType) -> bool:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType):
        return any(_has_list(each.dataType) for each in kind)
    return isinstance(kind, (ArrayType, MapType))
