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
_MOST_LISTS: Final = 250
_MOST_NUMBERS: Final = 10_000
# Rows with texts: some may have a megabyte each, whatever the table's rows have.
_MOST_TEXTS: Final = 125
_SMALL_BYTES: Final = 1_000


@contextmanager
def arrow_batches(frame: DataFrame, row_bytes: float = 0.0) -> Iterator[None]:
    """Run a block, an action on ``frame``, in Arrow batches of a size that suits its columns.

    ``row_bytes`` is about the size of such a row, in data files or in memory, 0 if it is not known.

    Since 4.1, Spark measures a batch after each row, which takes longer than filling it. Batches
    of few rows are small without that, unless rows are large, there are binary values, or a cluster
    has set the size. For a column of lists or maps, Spark walks over all rows since the last that
    has one, so the time grows with the square of the batch where most are NULL.
    """
    spark = frame.sparkSession
    asked = int(spark.conf.get(_ROWS_PER_BATCH) or 0)
    most, is_measured = _most_rows(frame, row_bytes)
    wanted = {}
    if most is not None and not 0 < asked <= most:
        wanted[_ROWS_PER_BATCH] = str(most)
    if not is_measured and spark.conf.get(_BYTES_PER_BATCH, _MEASURED) == _MEASURED:
        wanted[_BYTES_PER_BATCH] = _UNMEASURED
    with fixed_settings(spark, wanted):
        yield


def _most_rows(frame: DataFrame, row_bytes: float) -> tuple[int | None, bool]:
    """The largest number of rows, None: as the session says; and whether Spark measures them."""
    from pyspark.sql.types import ArrayType, BinaryType, CharType, MapType, StringType, VarcharType

    kinds = [each.dataType for each in frame.schema]
    if any(_has(kind, (ArrayType, MapType)) for kind in kinds):
        return _MOST_LISTS, True
    if any(_has(kind, (BinaryType,)) for kind in kinds) or row_bytes > _SMALL_BYTES:
        return None, True
    if any(_has(kind, (StringType, CharType, VarcharType)) for kind in kinds):
        return _MOST_TEXTS, False
    return _MOST_NUMBERS, False


def _has(kind: DataType, wanted: tuple[type[DataType], ...]) -> bool:
    from pyspark.sql.types import StructType

    if isinstance(kind, StructType):
        return any(_has(each.dataType, wanted) for each in kind)
    return isinstance(kind, wanted)
