"""Filtering out rows that deletion vectors mark, with a Spark join. Driver only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from spark_jobs.connectors.paimon.format.vectors import DeletedWords, VectorLocation
from spark_jobs.datafiles.marked_rows import most_words
from spark_jobs.spark_reads.marked_rows import WORDS_SCHEMA, without_marked
from spark_jobs.spi.arrow_tasks import map_in_arrow
from spark_jobs.spi.tables import PlannedFile

if TYPE_CHECKING:
    import pyarrow.fs as pafs
    from pyspark.sql import DataFrame

_VECTORS_SCHEMA: Final = "ordinal int, path string, start bigint, length bigint, cardinality bigint"


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
    read = map_in_arrow(frame, DeletedWords(filesystem), WORDS_SCHEMA)
    most = sum(most_words(each.deleted_row_count, each.row_count) for each, _ in vectors)
    return without_marked(rows, ordinal, position, read, most)
