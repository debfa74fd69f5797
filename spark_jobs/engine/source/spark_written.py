"""Rows of a source that Spark's own Parquet writer stores: sooner than tasks get them as Arrow.

The first algorithm of Hadoop's ``FileOutputCommitter`` is fixed: an attempt of a task writes below
``_temporary``, and the driver moves the files of one attempt of each task into the folder once all
tasks have succeeded. So the files that are then in the folder are those of the rows.

Unlike other tasks, these do not look at the lease. What a task writes after its run was given up
has no reader: it stays below ``_temporary``, which nobody lists. And it does not stay for long: it
is in the run's scratch folder, which is removed when the run ends, by the next try of the
operation, and, if there is none, by the search for leftovers.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pyarrow.fs as pafs
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from spark_jobs.engine.runtime.query_status import wait_for_stragglers
from spark_jobs.engine.runtime.session import fixed_settings
from spark_jobs.engine.runtime.spill import ROW_GROUP_BYTES, SpilledFile
from spark_jobs.spi.storage import WarehouseStorage

_FOOTERS_AT_ONCE: Final = 16
# The sizes of values as Arrow, by the names that Parquet has for their types.
_BITS: Final = {"DECIMAL": 128, "INT_8": 8, "INT_16": 16}
_PHYSICAL_BITS: Final = {"BOOLEAN": 1, "INT32": 32, "INT64": 64, "FLOAT": 32, "DOUBLE": 64}
_OFFSET_BITS: Final = 32
_EXACT: Final = (
    BinaryType,
    BooleanType,
    ByteType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    TimestampNTZType,
    TimestampType,
)
_SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.fieldId.write.enabled": "false",
    "spark.sql.parquet.output.committer.class": "org.apache.parquet.hadoop.ParquetOutputCommitter",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.sources.commitProtocolClass": (
        "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
    ),
}
# They also replace the cluster's settings of Hadoop.
_OPTIONS: Final[Mapping[str, str]] = {
    "compression": "zstd",
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "maxRecordsPerFile": "0",
    "parquet.block.size": str(ROW_GROUP_BYTES),
    "parquet.bloom.filter.enabled": "false",
    "parquet.compression.codec.zstd.level": "1",
    "parquet.compression.codec.zstd.workers": "0",
    # This factory encrypts nothing without keys; pyarrow could not read it.
    "parquet.crypto.factory.class": (
        "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory"
    ),
    "parquet.encryption.column.keys": "",
    "parquet.encryption.footer.key": "",
    "parquet.encryption.uniform.key": "",
    # Building dictionaries takes longer than they save in files that are read once.
    "parquet.enable.dictionary": "false",
    # The sizes of values are told by the sizes of their pages.
    "parquet.writer.version": "PARQUET_1_0",
}


def spark_can_write(schema: StructType, storage: WarehouseStorage) -> bool:
    """Whether Spark can write rows of ``schema`` there, and they come back as they are.

    Hadoop's configuration would replace ``${…}`` in a path, and the Java of an executor without a
    UTF-8 locale other characters than ASCII.
    """
    place = storage.uri
    return place is not None and place.isascii() and "${" not in place and _is_exact(schema)


def _is_exact(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        # Spark refuses groups that are empty, and names that differ only in case.
        names = {name.lower() for name in kind.names}
        return 0 < len(names) == len(kind) and all(_is_exact(each.dataType) for each in kind)
    if isinstance(kind, ArrayType):
        return _is_exact(kind.elementType)
    if isinstance(kind, MapType):
        return _is_exact(kind.keyType) and _is_exact(kind.valueType)
    # Subclasses are other types; a string with a collation is not equal to one without.
    return type(kind) in _EXACT or kind == StringType()


def written_by_spark(rows: DataFrame, storage: WarehouseStorage, folder: str) -> list[SpilledFile]:
    """Write ``rows`` once, into files in ``folder`` of the workspace, which does not exist yet.

    A frame that fails leaves no running task.
    """
    spark = rows.sparkSession
    try:
        with fixed_settings(spark, _SETTINGS):
            rows.write.options(**_OPTIONS).parquet(f"{storage.uri}/{folder}")
    except BaseException:
        wait_for_stragglers(spark)
        raise
    return _found(storage.filesystem, f"{storage.root}/{folder}")


def _found(filesystem: pafs.FileSystem, folder: str) -> list[SpilledFile]:
    """The files with rows, in the order of the tasks that wrote them."""
    infos = filesystem.get_file_info(pafs.FileSelector(folder))
    names = sorted(each.base_name for each in infos if each.base_name.endswith(".parquet"))

    def described(name: str) -> SpilledFile:
        footer = pq.read_metadata(f"{folder}/{name}", filesystem=filesystem)
        return SpilledFile(name, footer.num_rows, _arrow_bytes(footer))

    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
        return [each for each in pool.map(described, names) if each.row_count]


def _arrow_bytes(footer: pq.FileMetaData) -> int:
    """About the bytes of a file's rows as Arrow."""
    columns = [footer.schema.column(index) for index in range(footer.num_columns)]
    bits = [
        _BITS.get(column.converted_type) or _PHYSICAL_BITS.get(column.physical_type)
        for column in columns
    ]
    size = 0
    for group in map(footer.row_group, range(footer.num_row_groups)):
        for index, width in enumerate(bits):
            chunk = group.column(index)
            fixed = chunk.num_values * (width or _OFFSET_BITS) // 8
            size += fixed if width else max(fixed, chunk.total_uncompressed_size)
    return size
