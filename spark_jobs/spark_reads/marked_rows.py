"""Filtering out rows that are marked as deleted, with a Spark join. Driver only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from pyspark.sql import functions as F

from spark_jobs.datafiles.file_changes import Positions
from spark_jobs.datafiles.marked_rows import WORD_BITS, WORDS_PER_FILE_BITS, MarkedWords, most_words
from spark_jobs.packing import in_order
from spark_jobs.spark_reads.parquet_rows import ORDINAL, POSITION
from spark_jobs.spi.arrow_tasks import ScanTasks, map_tasks
from spark_jobs.spi.rows import RESERVED_PREFIX
from spark_jobs.spi.tables import PlannedFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Marks = TypeVar("Marks")

# The columns of ``marked_words``, for Spark.
_WORDS_SCHEMA: Final = "word_key bigint, word bigint"
_WORD_KEY: Final = f"{RESERVED_PREFIX}word_key"
_WORD: Final = f"{RESERVED_PREFIX}word"
# About 100 MB on each executor.
_BROADCAST_WORDS: Final = 3_000_000
_TASKS_PER_CORE: Final = 2


def without_marked(
    rows: DataFrame,
    files: Sequence[PlannedFile],
    marks: Mapping[int, Marks],
    positions: Callable[[Marks], Positions],
) -> DataFrame:
    """The located ``rows`` (``parquet_rows``) of ``files`` without those that are marked.

    ``marks`` are by ordinal; executors read the ``positions`` that they mark. Picklable.
    """
    marked = [each for each in files if each.ordinal in marks]
    if not marked:
        return rows
    spark = rows.sparkSession
    count = _TASKS_PER_CORE * spark.sparkContext.defaultParallelism
    tasks = in_order([(each.ordinal, marks[each.ordinal]) for each in marked], count)
    read = map_tasks(spark, len(tasks), ScanTasks(MarkedWords(positions), tasks), _WORDS_SCHEMA)
    words = read.toDF(_WORD_KEY, _WORD)
    # How many rows of a file are marked may not be known.
    most = sum(
        most_words(each.deleted_row_count or each.row_count, each.row_count) for each in marked
    )
    if most <= _BROADCAST_WORDS:
        words = F.broadcast(words)
    of_file = F.shiftleft(F.col(ORDINAL).cast("bigint"), WORDS_PER_FILE_BITS)
    keyed = rows.withColumn(_WORD_KEY, of_file + F.shiftright(POSITION, WORD_BITS))
    bit = F.getbit(_WORD, F.col(POSITION).bitwiseAND(63).cast("int"))
    return keyed.join(words, _WORD_KEY, "left").where(F.col(_WORD).isNull() | (bit == 0))
