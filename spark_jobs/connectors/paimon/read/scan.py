"""Target rows, read by Spark's vectorised parquet reader or by pyarrow. Driver only.

Spark's reader is the faster one where all rows are wanted. Where a dynamic filter leaves few of
them, pyarrow decodes the other columns of those only, and nothing else becomes a row of the JVM.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, IntegerType, LongType, StructField, StructType

from spark_jobs.arrow_types import arrow_type
from spark_jobs.connectors.paimon.format.row_id import FILE_FIELD, POSITION_FIELD
from spark_jobs.connectors.paimon.format.types import has_nanoseconds
from spark_jobs.connectors.paimon.format.vectors import (
    WORD_BITS,
    WORDS_PER_FILE_BITS,
    DeletedWords,
    VectorLocation,
)
from spark_jobs.connectors.paimon.read.arrow_scan import ArrowScan, ScannedFile
from spark_jobs.connectors.paimon.table.table_handle import paimon_table
from spark_jobs.errors import ErrorCode, InternalError, NotSupportedError, to_marker
from spark_jobs.spi.arrow_tasks import map_in_arrow
from spark_jobs.spi.connector import ArrowRows
from spark_jobs.spi.dynamic_filter import DynamicFilter
from spark_jobs.spi.packing import scan_tasks
from spark_jobs.spi.paths import escape_glob
from spark_jobs.spi.rows import RESERVED_PREFIX, ROW_ID
from spark_jobs.spi.tables import Column, PlannedFile, TableHandle

if TYPE_CHECKING:
    import pyarrow.fs as pafs
    from pyspark.sql import DataFrame, SparkSession

Reader = Literal["auto", "spark", "pyarrow"]

_NAME: Final = f"{RESERVED_PREFIX}file_name"
_ORDINAL: Final = f"{RESERVED_PREFIX}file_ordinal"
_POSITION: Final = f"{RESERVED_PREFIX}position"

# Names, and "/" between them, that are the same within a URI.
_UNQUOTED: Final = re.compile(r"[A-Za-z0-9._/-]*")

_WORD_KEY: Final = f"{RESERVED_PREFIX}word_key"
_WORD: Final = f"{RESERVED_PREFIX}word"

_VECTORS_SCHEMA: Final = "ordinal int, path string, start bigint, length bigint, cardinality bigint"
# About 100 MB in each executor.
_BROADCAST_WORDS: Final = 3_000_000

_TASKS_PER_CORE: Final = 2
_BYTES_PER_TASK: Final = 2**30
_ROW_ID_TYPE: Final = StructType(
    [StructField(FILE_FIELD, IntegerType()), StructField(POSITION_FIELD, LongType())]
)

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

    ``filesystem`` is where executors find deletion vectors, and data files where pyarrow reads
    them; ``reader``: which one reads, or ``auto``. ``spark_prefix`` makes their paths Spark's.
    """

    def __init__(
        self, filesystem: pafs.FileSystem, reader: Reader = "auto", spark_prefix: str = "file://"
    ) -> None:
        self._filesystem = filesystem
        self._reader = reader
        self._spark_prefix = spark_prefix

    def read(
        self,
        spark: SparkSession,
        table: TableHandle,
        files: Sequence[PlannedFile],
        columns: Sequence[str],
        dynamic_filter: DynamicFilter | None = None,
    ) -> DataFrame:
        """The rows of ``files`` with ``columns`` and the row id; CHAR and VARCHAR are STRING.

        Raises:
            NotSupportedError: a column holds timestamps that Spark would round.
        """
        _refuse_nanoseconds(table, columns)
        if self._reader == "pyarrow" or (self._reader == "auto" and dynamic_filter is not None):
            keys = dynamic_filter.values if dynamic_filter else {}
            return self._read_by_pyarrow(spark, table, files, columns, keys)
        return self._read_by_spark(spark, table, files, columns)

    def _read_by_pyarrow(
        self,
        spark: SparkSession,
        table: TableHandle,
        files: Sequence[PlannedFile],
        columns: Sequence[str],
        keys: Mapping[str, pa.Array],
    ) -> DataFrame:
        types = _types(spark, table, columns)
        scan = self._arrow_scan(spark, table, files, types, keys)
        read = [*types.values(), _ROW_ID_TYPE]
        schema = StructType([StructField(f"c{i}", kind) for i, kind in enumerate(read)])
        tasks = len(scan.scan_tasks)
        numbers = spark.range(0, tasks, 1, max(tasks, 1))
        return map_in_arrow(numbers, scan, schema).toDF(*columns, ROW_ID)

    def arrow_rows(
        self,
        spark: SparkSession,
        table: TableHandle,
        files: Sequence[PlannedFile],
        columns: Sequence[str],
    ) -> ArrowRows:
        """The rows of ``files`` with ``columns``, then the row id, read by pyarrow.

        Raises:
            NotSupportedError: a column holds timestamps that Spark would round.
        """
        _refuse_nanoseconds(table, columns)
        scan = self._arrow_scan(spark, table, files, _types(spark, table, columns), {})
        return ArrowRows(
            scan, tuple(tuple(file.ordinal for file in task) for task in scan.scan_tasks)
        )

    def _arrow_scan(
        self,
        spark: SparkSession,
        table: TableHandle,
        files: Sequence[PlannedFile],
        types: Mapping[str, DataType],
        keys: Mapping[str, pa.Array],
    ) -> ArrowScan:
        fields = tuple(pa.field(name, arrow_type(kind)) for name, kind in types.items())
        tasks = self._scan_tasks(spark.sparkContext.defaultParallelism, table, files)
        return ArrowScan(self._filesystem, tasks, fields, keys)

    def _scan_tasks(
        self, parallelism: int, table: TableHandle, files: Sequence[PlannedFile]
    ) -> tuple[tuple[ScannedFile, ...], ...]:
        """The files that each task reads, one after another."""
        vectors = paimon_table(table).vectors
        sizes = {file.ordinal: file.size for file in files}
        wanted = max(_TASKS_PER_CORE * parallelism, sum(sizes.values()) // _BYTES_PER_TASK)
        scanned = {}
        for file in files:
            vector = vectors[file.path.rpartition("/")[2]] if file.deleted_row_count else None
            scanned[file.ordinal] = ScannedFile(file.ordinal, file.path, vector)
        tasks = scan_tasks(sizes, wanted)
        return tuple(tuple(scanned[ordinal] for ordinal in task) for task in tasks)

    def _read_by_spark(
        self,
        spark: SparkSession,
        table: TableHandle,
        files: Sequence[PlannedFile],
        columns: Sequence[str],
    ) -> DataFrame:
        schema = _schema(table)
        if not files:
            empty = spark.createDataFrame([], schema)
            return empty.select(*map(_quote, columns), _row_id(F.lit(0), F.lit(0)))
        reader = spark.read.schema(schema).options(**_READER_OPTIONS)
        with _files_looked_up_on_the_driver(spark):
            paths = [escape_glob(f"{self._spark_prefix}{file.path}") for file in files]
            raw = reader.parquet(*paths)
        # _metadata through its own door: a table column may have that name too.
        metadata = _metadata_column(raw)
        rows = raw.select(
            *map(_quote, columns),
            metadata["file_name"].alias(_NAME),
            metadata["row_index"].alias(_POSITION),
        )
        # Not an inner join: rows of a file whose name does not match may not go unnoticed.
        ordinals = rows.join(F.broadcast(_ordinals_by_name(spark, files)), _NAME, "left")
        located = ordinals.withColumn(_ORDINAL, F.coalesce(_ORDINAL, _unknown_file()))
        live = self._without_deleted(spark, paimon_table(table).vectors, files, located)
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
        rows = [(f.ordinal, *vector) for f, vector in found]
        located_vectors = spark.createDataFrame(rows, _VECTORS_SCHEMA)
        words = map_in_arrow(located_vectors, read, "word_key bigint, word bigint").toDF(
            _WORD_KEY, _WORD
        )
        count = sum(min(f.deleted_row_count, (f.row_count >> WORD_BITS) + 1) for f, _ in found)
        if count <= _BROADCAST_WORDS:
            words = F.broadcast(words)
        of_file = F.shiftleft(F.col(_ORDINAL).cast("bigint"), WORDS_PER_FILE_BITS)
        keyed = located.withColumn(_WORD_KEY, of_file + F.shiftright(_POSITION, WORD_BITS))
        bit = F.getbit(_WORD, F.col(_POSITION).bitwiseAND(63).cast("int"))
        return keyed.join(words, _WORD_KEY, "left").where(F.col(_WORD).isNull() | (bit == 0))


def _types(spark: SparkSession, table: TableHandle, columns: Sequence[str]) -> dict[str, DataType]:
    """Spark's types of ``columns`` as frames have them, in their order."""
    schema = spark.createDataFrame([], _schema(table)).schema
    return {name: schema[name].dataType for name in columns}


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
    names = _names_in_spark(spark, files)
    text = "/".join(f"{file.ordinal}:{name}" for file, name in zip(files, names, strict=True))
    entry = F.explode(F.split(F.lit(text), "/")).alias("entry")
    parts = F.split("entry", ":", 2)
    return (
        spark.range(1)
        .select(entry)
        .select(parts[1].alias(_NAME), parts[0].cast("int").alias(_ORDINAL))
    )


def _names_in_spark(spark: SparkSession, files: Sequence[PlannedFile]) -> list[str]:
    """The files' names as ``_metadata.file_name`` has them, which is a part of a URI."""
    names = "/".join(file.path.rpartition("/")[2] for file in files)
    if not _UNQUOTED.fullmatch(names):
        jvm: Any = spark.sparkContext._jvm
        names = jvm.java.net.URI(None, None, f"/{names}", None).getRawPath()[1:]
    return names.split("/")


def _unknown_file() -> SparkColumn:
    problem = InternalError(
        ErrorCode.INTERNAL_ERROR,
        "Spark has read a data file by the name %s, which was not planned.",
        "This is a defect: report it with the name.",
    )
    return F.raise_error(F.format_string(to_marker(problem), _NAME))


def _refuse_nanoseconds(table: TableHandle, columns: Sequence[str]) -> None:
    for column in paimon_table(table).schema.columns:
        if column.name in columns and has_nanoseconds(column.type):
            raise NotSupportedError(
                f"Column {column.name} has timestamps of precision 7 to 9, which Spark does not "
                "read exactly.",
                "Leave the column out of the statement.",
            )


def _schema(table: TableHandle) -> str:
    """All columns as Spark reads them, in DDL form."""
    return ", ".join(f"{_quote(c.name)} {_spark_readable(c)}" for c in table.columns)


def _spark_readable(column: Column) -> str:
    """A reader's schema knows no lengths of character types."""
    return re.sub(r"\b(?:var)?char\(\d+\)", "string", column.type)


def _quote(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
