"""Filtering out rows that deletion vectors mark, with a Spark join. Driver only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as F

from spark_jobs.connectors.paimon.format.vectors import DeletedWords, VectorLocation
from spark_jobs.datafiles.marked_rows import WORD_BITS, WORDS_PER_FILE_BITS, most_words
from spark_jobs.spi.arrow_tasks import map_in_arrow
from spark_jobs.spi.rows import RESERVED_PREFIX
from spark_jobs.spi.tables import PlannedFile

if TYPE_CHECKING:
    import pyarrow.fs as pafs
    from pyspark.sql import DataFrame

_WORD_KEY: Final = f"{RESERVED_PREFIX}word_key"
_WORD: Final = f"{RESERVED_PREFIX}word"

_VECTORS_SCHEMA: Final = "ordinal int, path string, start bigint, length bigint, cardinality bigint"
# About 100 MB on each executor.
_BROADCAST_WORDS: Final = 3_000_000


class VectorOfFile(NamedTuple):
    """A data file and the location of its deletion vector."""

    file: PlannedFile
    vector: VectorLocation


def without_deleted(
    rows: DataFrame,
    ordinal: str,
    position: str,
    vectors: Sequence[VectorOfFile],
    filesystem: pafs.FileSystem,
) -> DataFrame:
    """``rows`` without those that ``vectors`` mark as deleted.

    ``ordinal`` (int) and ``position`` (bigint) are the columns with a row's file and its position
    there.
    """
    if not vectors:
        return rows
    located = [(file.ordinal, *vector) for file, vector in vectors]
    frame = rows.sparkSession.createDataFrame(located, _VECTORS_SCHEMA)
    read = map_in_arrow(frame, DeletedWords(filesystem), "word_key bigint, word bigint")
    words = read.toDF(_WORD_KEY, _WORD)
    if sum(most_words(f.deleted_row_count, f.row_count) for f, _ in vectors) <= _BROADCAST_WORDS:
        words = F.broadcast(words)
    of_file = F.shiftleft(F.col(ordinal).cast("bigint"), WORDS_PER_FILE_BITS)
    keyed = rows.withColumn(_WORD_KEY, of_file + F.shiftright(position, WORD_BITS))
    bit = F.getbit(_WORD, F.col(position).bitwiseAND(63).cast("int"))
    return keyed.join(words, _WORD_KEY, "left").where(F.col(_WORD).isNull() | (bit == 0))
