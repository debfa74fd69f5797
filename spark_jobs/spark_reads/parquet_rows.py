"""Reads rows of data files and their places with Spark's vectorised Parquet reader. Driver only."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from spark_jobs.datafiles.row_id import FILE_FIELD, POSITION_FIELD
from spark_jobs.errors import CatalogError, ErrorCode, InternalError, to_marker
from spark_jobs.pushed_filters import read_column
from spark_jobs.spark_paths import escape_glob
from spark_jobs.spark_reads.mapped_columns import ReadColumns
from spark_jobs.spi.file_index import FileIndex
from spark_jobs.spi.rows import RESERVED_PREFIX, ROW_ID
from spark_jobs.spi.tables import PlannedFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROW_ID_TYPE: Final = StructType(
    [StructField(FILE_FIELD, IntegerType()), StructField(POSITION_FIELD, LongType())]
)
_NAME: Final = f"{RESERVED_PREFIX}file_name"
ORDINAL: Final = f"{RESERVED_PREFIX}file_ordinal"
POSITION: Final = f"{RESERVED_PREFIX}position"

# Names, separated by "/", that need no escaping in a URI.
_UNQUOTED: Final = re.compile(r"[A-Za-z0-9._/-]*")

_LISTING_THRESHOLD: Final = "spark.sql.sources.parallelPartitionDiscovery.threshold"

# Override the session's settings: no file may be skipped, and no old calendar may shift a date.
_READER_OPTIONS: Final = {
    "mergeSchema": "false",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}


def parquet_rows(
    spark: SparkSession, files: Sequence[PlannedFile], groups: Sequence[ReadColumns], prefix: str
) -> DataFrame:
    """The rows of ``files``, whose names differ, with the columns of ``groups``.

    Each row also has the ordinal of its file in the column ``ORDINAL`` (int) and its position there
    in ``POSITION`` (bigint). ``groups`` are the same files, at least one. ``prefix`` turns their
    paths into Spark's.

    Raises:
        CatalogError: DATA_FILE_UNREADABLE: Spark does not find a file, or not with all its bytes.
    """
    frames = [_rows(spark, group, prefix) for group in groups]
    rows = functools.reduce(DataFrame.union, frames)
    # Not an inner join: it would silently drop the rows of a file whose name does not match.
    ordinals = rows.join(F.broadcast(_ordinals_by_name(spark, files)), _NAME, "left")
    return ordinals.withColumn(ORDINAL, F.coalesce(ORDINAL, _unknown_file()))


def _rows(spark: SparkSession, group: ReadColumns, prefix: str) -> DataFrame:
    """The rows of files with one schema, the name of each row's file and its position there.

    Raises:
        CatalogError: DATA_FILE_UNREADABLE, as ``parquet_rows``.
    """
    reader = spark.read.schema(group.schema).options(**_READER_OPTIONS)
    with _files_looked_up_on_the_driver(spark):
        raw = reader.parquet(*(escape_glob(f"{prefix}{file.path}") for file in group.files))
    _require_planned(FileIndex.of(raw), group.files)
    # Not by the name _metadata, because a table column may have that name too.
    metadata = _metadata_column(raw)
    read = [
        read_column(raw.schema[each.name], has_microseconds=_has_microseconds(group, each))
        for each in group.recorded
    ]
    stored = raw.select(
        *read, metadata["file_name"].alias(_NAME), metadata["row_index"].alias(POSITION)
    )
    return stored.select(*group.columns, _NAME, POSITION)


def _has_microseconds(group: ReadColumns, field: pa.Field) -> bool:
    is_exact = field.name in group.exact
    return is_exact and bool(pa.types.is_timestamp(field.type)) and field.type.unit == "us"


def _require_planned(listed: FileIndex, files: Sequence[PlannedFile]) -> None:
    planned = sum(file.size for file in files)
    if (listed.file_count, listed.byte_size) == (len(files), planned):
        return
    sizes = listed.sizes
    for file in files:
        size = next((sizes[each] for each in sizes if each.endswith(file.path)), None)
        if size != file.size:
            has = "is not there for Spark" if size is None else f"has {size} bytes for Spark"
            raise CatalogError(
                ErrorCode.DATA_FILE_UNREADABLE,
                f"{file.path} {has}; the table's metadata has {file.size} bytes.",
                "Restore the file, or roll the table back to a snapshot without it.",
            )
    raise InternalError(
        ErrorCode.INTERNAL_ERROR,
        f"Spark would read {len(sizes)} data files, but {len(files)} were planned.",
        "This is a defect: report it.",
    )


@contextmanager
def _files_looked_up_on_the_driver(spark: SparkSession) -> Iterator[None]:
    """Make Spark look up files on the driver within this context.

    By default, Spark looks up more than 32 paths in a job with a task for each path, which takes
    ten times as long.
    """
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


def row_id(ordinal: SparkColumn, position: SparkColumn) -> SparkColumn:
    """The row id of a row at ``position`` of the file ``ordinal``."""
    return F.struct(
        ordinal.cast("int").alias(FILE_FIELD), position.cast("bigint").alias(POSITION_FIELD)
    ).alias(ROW_ID)


def _ordinals_by_name(spark: SparkSession, files: Sequence[PlannedFile]) -> DataFrame:
    """Columns: file name (string, unique), ordinal (int). Created in the JVM, without a job."""
    names = _names_in_spark(spark, files)
    text = "/".join(f"{file.ordinal}:{name}" for file, name in zip(files, names, strict=True))
    entry = F.explode(F.split(F.lit(text), "/")).alias("entry")
    parts = F.split("entry", ":", 2)
    return (
        spark.range(1)
        .select(entry)
        .select(parts[1].alias(_NAME), parts[0].cast("int").alias(ORDINAL))
    )


def _names_in_spark(spark: SparkSession, files: Sequence[PlannedFile]) -> list[str]:
    """The names of the files as in ``_metadata.file_name``, which is part of a URI."""
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
