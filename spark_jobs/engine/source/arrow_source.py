"""Reads files with pyarrow into a frame, where Spark has no file system for them. Driver only.

PySpark ships no file system for object stores. pyarrow has one, and reads Parquet and ORC. Except
for landed formats, other formats need the Hadoop jar of the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from pyarrow import orc
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from spark_jobs.arrow_types import arrow_schema
from spark_jobs.contract.source_names import placed_source
from spark_jobs.engine.runtime.java_names import java_class
from spark_jobs.engine.source.arrow_reader import ArrowFileReader, FileSplit
from spark_jobs.errors import CatalogError, ErrorCode, NotSupportedError
from spark_jobs.landing.files import FileVersion
from spark_jobs.packing import in_order
from spark_jobs.spi.arrow_tasks import ScanTasks, map_tasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.contract.request import FileSource
    from spark_jobs.landing.files import LandedFile
    from spark_jobs.spi.storage import FileLocation

_FORMATS: Final = ("parquet", "orc")
_OWN_JAR: Final = (
    "Put the Hadoop jar of the store (for S3: hadoop-aws) on Spark's class path; then Spark's own "
    "reader is used."
)
SPLIT_BYTES: Final = 128 * 1024 * 1024
_MAX_TASKS: Final = 10_000
_UNSIGNED: Final = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}


def spark_knows(spark: SparkSession, uri: str) -> bool:
    """Whether Spark has a file system for the scheme of ``uri``."""
    scheme, separator, _ = uri.partition("://")
    if not separator:
        return True
    from py4j.protocol import Py4JJavaError

    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    file_systems = java_class(spark, "org.apache.hadoop.fs.FileSystem")
    try:
        file_systems.getFileSystemClass(scheme, configuration)
    except Py4JJavaError:
        return False
    return True


def read_source(
    spark: SparkSession,
    source: FileSource,
    filesystem: pafs.FileSystem,
    files: Sequence[LandedFile],
    schema: StructType | None,
) -> DataFrame:
    """The rows of ``files``, in Parquet or ORC, with the columns of ``schema`` or their own.

    Raises:
        CatalogError: SOURCE_UNREADABLE, naming the source.
        NotSupportedError: a column that Spark's own reader would also refuse, or would round.
    """
    is_orc = source.format.lower() == "orc"
    try:
        if schema is None:
            with filesystem.open_input_file(files[0].path) as stream:
                found = _orc_schema(stream) if is_orc else _parquet_schema(stream)
                schema = from_arrow_schema(found, prefer_timestamp_ntz=True)
    except (OSError, pa.ArrowException) as error:
        raise CatalogError(
            ErrorCode.SOURCE_UNREADABLE,
            f"{placed_source(source)}: {error}",
            "Check the source's path and format.",
        ) from error
    by_file = (
        [whole_file(file.path, file.version)]
        if is_orc
        else parquet_splits(file.path, file.version.size, file.version)
        for file in files
    )
    return read_files(spark, filesystem, [*chain(*by_file)], schema, is_orc=is_orc)


def read_files(
    spark: SparkSession,
    filesystem: pafs.FileSystem,
    splits: Sequence[FileSplit],
    schema: StructType,
    *,
    is_orc: bool = False,
) -> DataFrame:
    """The rows of ``splits`` as a frame of ``schema``."""
    if not splits:
        return spark.createDataFrame([], schema)
    tasks = in_order(splits, _MAX_TASKS)
    reader = ArrowFileReader(filesystem, is_orc, arrow_schema(schema))
    return map_tasks(spark, len(tasks), ScanTasks(reader, tasks), schema)


def whole_file(path: str, version: FileVersion | None = None) -> FileSplit:
    """All of a file as one split."""
    return FileSplit(path, 0, 2**63 - 1, version)


def refuse_unsupported(source: FileSource) -> None:
    """Refuse what only Spark's own file readers can do.

    Raises:
        NotSupportedError: names the format, the option or the path with a pattern.
    """
    where = placed_source(source)
    if source.format.lower() not in _FORMATS:
        raise NotSupportedError(
            f"{where}: Spark has no file system for this path, and without one only CSV, JSON, "
            "text, Avro, parquet and ORC can be read.",
            _OWN_JAR,
        )
    options = {
        name: value for name, value in source.options.items() if not _is_default(name, value)
    }
    if options:
        raise NotSupportedError(
            f"{where}: Spark has no file system for this path, and without one the option "
            f"{next(iter(options))} is not supported.",
            f"Leave the option out. {_OWN_JAR}",
        )
    if any(character in source.path for character in "*?[]{}"):
        raise NotSupportedError(
            f"{where}: Spark has no file system for this path, and without one patterns are not "
            "supported.",
            f"Name a file or a folder. {_OWN_JAR}",
        )


def _is_default(name: str, value: str) -> bool:
    return name.lower() in ("mergeschema", "recursivefilelookup") and value.lower() == "false"


def listed(source: FileSource, location: FileLocation) -> list[pafs.FileInfo]:
    """The source's files; names with a leading ``_`` or ``.`` are skipped, as in Spark.

    Raises:
        CatalogError: SOURCE_NOT_FOUND, SOURCE_UNREADABLE, naming the source.
        NotSupportedError: it has partition folders.
    """
    where = placed_source(source)
    try:
        info = location.filesystem.get_file_info(location.path)
        if info.type == pafs.FileType.File:
            return [info]
        found = location.filesystem.get_file_info(
            pafs.FileSelector(location.path, allow_not_found=True)
        )
    except OSError as error:
        raise CatalogError(
            ErrorCode.SOURCE_UNREADABLE,
            f"{where}: {error}",
            "Check the path, and endpoint and key of the catalog connection.",
        ) from error
    visible = [each for each in found if not each.base_name.startswith(("_", "."))]
    folders = [each for each in visible if each.type == pafs.FileType.Directory]
    if any("=" in folder.base_name for folder in folders):
        raise NotSupportedError(
            f"{where}: Spark has no file system for this path, and without one folders that stand "
            f"for partitions ({folders[0].base_name}) are not supported.",
            f"Name one of these folders. {_OWN_JAR}",
        )
    files = [each for each in visible if each.type == pafs.FileType.File and each.size]
    if not files:
        raise CatalogError(
            ErrorCode.SOURCE_NOT_FOUND,
            f"{where} holds no files",
            "Check the path; for a source that may be empty, write a file without rows.",
        )
    return sorted(files, key=lambda each: each.path)


def parquet_splits(path: str, size: int, version: FileVersion) -> list[FileSplit]:
    """The splits of a Parquet file that tasks read."""
    return [
        FileSplit(path, start, min(start + SPLIT_BYTES, size), version)
        for start in range(0, size, SPLIT_BYTES)
    ]


def _orc_schema(stream: pa.NativeFile) -> pa.Schema:
    return orc.ORCFile(stream).schema


def _parquet_schema(stream: pa.NativeFile) -> pa.Schema:
    with pq.ParquetFile(stream) as file:
        leaves = [file.schema.column(i) for i in range(len(file.schema))]
        int96 = frozenset(leaf.path for leaf in leaves if leaf.physical_type == "INT96")
        return _as_spark_has_it(file.schema_arrow, int96)


def _as_spark_has_it(schema: pa.Schema, int96: frozenset[str]) -> pa.Schema:
    """The schema in Spark's types; ``int96`` are columns of Spark's old timestamps, in UTC.

    Raises:
        NotSupportedError: a column that Spark's own reader would also refuse, or would round.
    """
    nested = [path for path in int96 if path not in schema.names]
    if nested:
        raise NotSupportedError(
            f"column {nested[0]} of the source holds INT96 timestamps inside a nested type.",
            "Write it with spark.sql.parquet.outputTimestampType = TIMESTAMP_MICROS.",
        )
    return pa.schema(
        [pa.field(field.name, _spark_type(field, field.name in int96)) for field in schema]
    )


def _spark_type(field: pa.Field, is_int96: bool) -> pa.DataType:
    return pa.timestamp("us", "UTC") if is_int96 else _stored_type(field.type)


def _stored_type(kind: pa.DataType) -> pa.DataType:
    """What Spark makes of a type; of nanoseconds, numbers (``source.nanoseconds``)."""
    if pa.types.is_dictionary(kind):
        return _stored_type(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([_stored_field(each) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(_stored_field(kind.key_field), _stored_field(kind.item_field))
    if pa.types.is_list(kind):
        return pa.list_(_stored_field(kind.value_field))
    if pa.types.is_timestamp(kind):
        return pa.int64() if kind.unit == "ns" else pa.timestamp("us", kind.tz)
    return _UNSIGNED.get(kind, kind)


def _stored_field(field: pa.Field) -> pa.Field:
    return field.with_type(_stored_type(field.type))
