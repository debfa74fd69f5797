"""How many rows Spark gives to Python at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    CharType,
    DataType,
    MapType,
    StringType,
    StructType,
    VarcharType,
)

from spark_jobs.contract.sql_text import quote
from spark_jobs.engine.runtime.session import fixed_settings
from spark_jobs.engine.runtime.sql_text import failing
from spark_jobs.errors import DataError, ErrorCode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS_PER_BATCH: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BYTES_PER_BATCH: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
# What Spark measures batches for by default, and what it does not measure them for.
_MEASURED: Final = "64MB"
_UNMEASURED: Final = str(2**31 - 1)
# The same in other letters, by which it is known that it was set.
_MEASURED_HERE: Final = "64m"
_TEXTS: Final = (StringType, CharType, VarcharType)
_MOST_LISTS: Final = 250
_MOST_NUMBERS: Final = 10_000
# Rows with texts: of which nothing is known, which may have a megabyte each; like those of a table
# of small rows; and those that are known to be small.
_MOST_TEXTS: Final = 125
_MOST_ALIKE: Final = 500
_MOST_SMALL: Final = 2_000
_SMALL_BYTES: Final = 1_000
# The most text in a row of a batch of 2,000, and of how many texts that is summed up.
_LONG_BYTES: Final = 128 * 1024
_MOST_SUMMED: Final = 32


@contextmanager
def arrow_batches(frame: DataFrame, row_bytes: float = 0.0) -> Iterator[None]:
    """Run a block, an action on ``frame``, in Arrow batches of a size that suits its columns.

    ``row_bytes`` is about the size of such a row, in data files or in memory, 0 if it is not known.

    Since 4.1, Spark measures a batch after each row, which takes longer than filling it. Batches
    of few rows are small without that, unless rows are large, there are binary values, or a cluster
    has set the size. For a column of lists or maps, Spark walks over all rows since the last that
    has one, so the time grows with the square of the batch where most are NULL.
    """
    with _batches(frame.sparkSession, *_most_rows(frame, row_bytes, _MOST_SMALL)):
        yield


@contextmanager
def batches_of_short_rows(frame: DataFrame, row_bytes: float = 0.0) -> Iterator[DataFrame]:
    """Run a block, an action on the frame that it gets, as ``arrow_batches`` does.

    It gets the rows of ``frame``, whose columns have plain names. Where a row of which nothing is
    known has more than 128 KiB of text, the action fails with ROWS_TOO_LONG: then it has to run
    again within ``measured_batches``. So batches need not be small for rows that are hardly ever
    there. ``row_bytes`` is about the size of a row of the table in data files.
    """
    spark, texts = frame.sparkSession, list(_texts(frame))
    most, is_measured = _most_rows(frame, row_bytes, _MOST_ALIKE)
    is_set = spark.conf.get(_BYTES_PER_BATCH, _MEASURED) != _MEASURED
    if is_measured or is_set or not 0 < len(texts) <= _MOST_SUMMED:
        with _batches(spark, most, is_measured):
            yield frame
        return
    with _batches(spark, _MOST_SMALL, is_measured=False):
        yield _short(frame, texts)


def measured_batches(spark: SparkSession) -> AbstractContextManager[None]:
    """Run a block in batches that Spark measures, since 4.1; ``arrow_batches`` leaves it that."""
    return fixed_settings(spark, {_BYTES_PER_BATCH: _MEASURED_HERE})


@contextmanager
def _batches(spark: SparkSession, most: int | None, is_measured: bool) -> Iterator[None]:
    asked = int(spark.conf.get(_ROWS_PER_BATCH) or 0)
    wanted = {}
    if most is not None and not 0 < asked <= most:
        wanted[_ROWS_PER_BATCH] = str(most)
    if not is_measured and spark.conf.get(_BYTES_PER_BATCH, _MEASURED) == _MEASURED:
        wanted[_BYTES_PER_BATCH] = _UNMEASURED
    with fixed_settings(spark, wanted):
        yield


def _short(frame: DataFrame, texts: list[str]) -> DataFrame:
    """``frame``, whose evaluation fails at a row with too much in ``texts``, paths of columns."""
    problem = DataError(
        ErrorCode.ROWS_TOO_LONG,
        f"a row has more than {_LONG_BYTES} bytes of text",
        "None: the statement runs again, in batches that Spark measures.",
    )
    size = " + ".join(f"coalesce(CAST(octet_length({text}) AS BIGINT), 0L)" for text in texts)
    first = texts[0].partition(".")[0]
    checked = (
        f"CASE WHEN {size} > {_LONG_BYTES} THEN {failing(problem)} ELSE {first} END AS {first}"
    )
    names = map(quote, frame.columns)
    return frame.selectExpr(*(checked if name == first else name for name in names))


def _texts(frame: DataFrame) -> Iterator[str]:
    """The paths of the texts in the rows of ``frame``, also of those in structs."""
    waiting = [(quote(each.name), each.dataType) for each in frame.schema]
    while waiting:
        path, kind = waiting.pop(0)
        if isinstance(kind, StructType):
            waiting += [(f"{path}.{quote(each.name)}", each.dataType) for each in kind]
        elif isinstance(kind, _TEXTS):
            yield path


def _most_rows(frame: DataFrame, row_bytes: float, small: int) -> tuple[int | None, bool]:
    """The largest number of rows, None: as the session says; and whether Spark measures them.

    ``small`` is that of small rows with texts.
    """
    kinds = [each.dataType for each in frame.schema]
    if any(_has(kind, (ArrayType, MapType)) for kind in kinds):
        return _MOST_LISTS, True
    if any(_has(kind, (BinaryType,)) for kind in kinds) or row_bytes > _SMALL_BYTES:
        return None, True
    if any(_has(kind, _TEXTS) for kind in kinds):
        return (small if row_bytes else _MOST_TEXTS), False
    return _MOST_NUMBERS, False


def _has(kind: DataType, wanted: tuple[type[DataType], ...]) -> bool:
    if isinstance(kind, StructType):
        return any(_has(each.dataType, wanted) for each in kind)
    return isinstance(kind, wanted)
