"""Target rows through Spark's own vectorised parquet reader. Driver only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from spark_jobs.connectors.paimon.native import native
from spark_jobs.connectors.paimon.sink import FILE_FIELD, POSITION_FIELD
from spark_jobs.connectors.paimon.types import has_nanoseconds
from spark_jobs.connectors.paimon.vectors import (
    WORD_BITS,
    WORDS_PER_FILE_BITS,
    DeletedWords,
    VectorLocation,
)
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi.paths import escape_glob
from spark_jobs.spi.rows import RESERVED_PREFIX, ROW_ID
from spark_jobs.spi.tables import Column, PlannedFile, TableHandle

if TYPE_CHECKING:
    import pyarrow.fs as pafs
    from pyspark.sql import DataFrame, SparkSession

_NAME: Final = f"{RESERVED_PREFIX}file_name"
_ORDINAL: Final = f"{RESERVED_PREFIX}file_ordinal"
_POSITION: Final = f"{RESERVED_PREFIX}position"

_WORD_KEY: Final = f"{RESERVED_PREFIX}word_key"
_WORD: Final = f"{RESERVED_PREFIX}word"

_VECTORS_SCHEMA: Final = "ordinal int, path string, start bigint, length bigint, cardinality bigint"
# About 100 MB in each executor.
_BROADCAST_WORDS: Final = 3_000_000

_LISTING_THRESHOLD: Final = "spark.sql.sources.parallelPartitionDiscovery.threshold"

# Whatever the session says: no file may be skipped, no old calendar may shift a date.
_READER_OPTIONS: Final = {
    "mergeSchema": "false",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}


class PaimonScan:
    """Implements ``ConnectorScan``; the row id is ``struct<file: int, position: bigint>``.

    ``filesystem`` is where executors find deletion vectors.
    """

    def __init__(self, filesystem: pafs.FileSystem) -> None:
        self._filesystem = filesystem

    def read(
        self,
        spark: SparkSession,
        table: TableHandle,
        files: Sequence[PlannedFile],
        columns: Sequence[str],
    ) -> DataFrame:
        """The rows of ``files`` with ``columns`` and the row id; CHAR and VARCHAR are STRING.

        Raises:
            NotSupportedError: a column holds timestamps that Spark would round.
        """
        _refuse_nanoseconds(table, columns)
        schema = ", ".join(f"{_quote(c.name)} {_spark_readable(c)}" for c in table.columns)
        if not files:
            empty = spark.createDataFrame([], schema)
            return empty.select(*map(_quote, columns), _row_id(F.lit(0), F.lit(0)))
        reader = spark.read.schema(schema).options(**_READER_OPTIONS)
        with _files_looked_up_on_the_driver(spark):
            raw = reader.parquet(*[escape_glob(file.path) for file in files])
        # _metadata through its own door: a table column may have that name too.
        metadata = _metadata_column(raw)
        rows = raw.select(
            *map(_quote, columns),
            metadata["file_name"].alias(_NAME),
            metadata["row_index"].alias(_POSITION),
        )
        located = rows.join(F.broadcast(_ordinals_by_name(spark, files)), _NAME)
        live = self._without_deleted(spark, native(table).vectors, files, located)
        return live.select(*map(_quote, columns), _row_id(F.col(_ORDINAL), F.col(_POSITION)))

    def _without_deleted(
        self,
        spark: SparkSession,
        vectors: Mapping[str, VectorLocation],
        files: Sequence[PlannedFile],
        located: DataFrame,
    ) -> DataFrame:
        """``located`` without the rows that deletion vectors mark, 64 of which make a word."""
        found = [(f, vectors[f.path.rpartition("/")[2]]) for f in files if f.deleted_row_count]
        if not found:
            return located
        read = DeletedWords(self._filesystem)
        words = (
            spark.createDataFrame([(f.ordinal, *vector) for f, vector in found], _VECTORS_SCHEMA)
            .mapInArrow(read, "word_key bigint, word bigint")
            .toDF(_WORD_KEY, _WORD)
        )
        count = sum(min(f.deleted_row_count, (f.row_count >> WORD_BITS) + 1) for f, _ in found)
        if count <= _BROADCAST_WORDS:
            words = F.broadcast(words)
        of_file = F.shiftleft(F.col(_ORDINAL).cast("bigint"), WORDS_PER_FILE_BITS)
        keyed = located.withColumn(_WORD_KEY, of_file + F.shiftright(_POSITION, WORD_BITS))
        bit = F.getbit(_WORD, F.col(_POSITION).bitwiseAND(63).cast("int"))
        return keyed.join(words, _WORD_KEY, "left").where(F.col(_WORD).isNull() | (bit == 0))


@contextmanager
def _files_looked_up_on_the_driver(spark: SparkSession) -> Iterator[None]:
    """Above 32 paths Spark starts a job with a task for each, which takes ten times as long."""
    before = spark.conf.get(_LISTING_THRESHOLD)
    spark.conf.set(_LISTING_THRESHOLD, str(2**31 - 1))
    try:
        yield
    finally:
        spark.conf.set(_LISTING_THRESHOLD, str(before))


def _metadata_column(frame: DataFrame) -> SparkColumn:
    if hasattr(frame, "metadataColumn"):
        return frame.metadataColumn("_metadata")
    return SparkColumn(frame._jdf.metadataColumn("_metadata"))  # PySpark 3.5


def _row_id(ordinal: SparkColumn, position: SparkColumn) -> SparkColumn:
    return F.struct(
        ordinal.cast("int").alias(FILE_FIELD), position.cast("bigint").alias(POSITION_FIELD)
    ).alias(ROW_ID)


def _ordinals_by_name(spark: SparkSession, files: Sequence[PlannedFile]) -> DataFrame:
    """Columns: file name (string, unique), ordinal (int). Made inside the JVM, without a job."""
    text = "/".join(f"{file.ordinal}:{file.path.rpartition('/')[2]}" for file in files)
    entry = F.explode(F.split(F.lit(text), "/")).alias("entry")
    parts = F.split("entry", ":", 2)
    return (
        spark.range(1)
        .select(entry)
        .select(parts[1].alias(_NAME), parts[0].cast("int").alias(_ORDINAL))
    )


def _refuse_nanoseconds(table: TableHandle, columns: Sequence[str]) -> None:
    for column in native(table).schema.columns:
        if column.name in columns and has_nanoseconds(column.type):
            raise NotSupportedError(
                f"Column {column.name} has timestamps of precision 7 to 9, which Spark does not "
                "read exactly.",
                "Leave the column out of the statement.",
            )


def _spark_readable(column: Column) -> str:
    """A reader's schema knows no lengths of character types."""
    return re.sub(r"\b(?:var)?char\(\d+\)", "string", column.type)


def _quote(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
