"""Filtering out rows that are marked as deleted, with a Spark join. Driver only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from spark_jobs.datafiles.marked_rows import WORD_BITS, WORDS_PER_FILE_BITS
from spark_jobs.spi.rows import RESERVED_PREFIX

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The columns of ``datafiles.marked_rows.marked_words``, for Spark.
WORDS_SCHEMA: Final = "word_key bigint, word bigint"

_WORD_KEY: Final = f"{RESERVED_PREFIX}word_key"
_WORD: Final = f"{RESERVED_PREFIX}word"
# About 100 MB on each executor.
_BROADCAST_WORDS: Final = 3_000_000


def without_marked(
    rows: DataFrame, ordinal: str, position: str, marked: DataFrame, most_words: int
) -> DataFrame:
    """``rows`` without those that the words ``marked`` (columns: ``WORDS_SCHEMA``) mark.

    ``ordinal`` (int) and ``position`` (bigint) are the columns with a row's file and its position
    there. There are at most ``most_words`` words.
    """
    words = marked.toDF(_WORD_KEY, _WORD)
    if most_words <= _BROADCAST_WORDS:
        words = F.broadcast(words)
    of_file = F.shiftleft(F.col(ordinal).cast("bigint"), WORDS_PER_FILE_BITS)
    keyed = rows.withColumn(_WORD_KEY, of_file + F.shiftright(position, WORD_BITS))
    bit = F.getbit(_WORD, F.col(position).bitwiseAND(63).cast("int"))
    return keyed.join(words, _WORD_KEY, "left").where(F.col(_WORD).isNull() | (bit == 0))
