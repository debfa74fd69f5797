"""Reads target rows with Spark's vectorised Parquet reader or with pyarrow. Driver only.

Spark's reader is faster if all rows are needed. If a dynamic filter leaves few rows, pyarrow
decodes the other columns only for those, and no other row reaches the JVM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
from pyspark.sql.types import DataType, StructField, StructType

from spark_jobs.arrow_types import arrow_type
from spark_jobs.connectors.paimon.format.types import has_nanoseconds
from spark_jobs.connectors.paimon.keyed.section_reader import RunFile, SectionReader
from spark_jobs.connectors.paimon.read.arrow_scan import (
    ArrowScan,
    AvroCheck,
    RangeScan,
    ScannedFile,
)
from spark_jobs.connectors.paimon.read.keyed_scan import KeyedScan, ScannedSection
from spark_jobs.connectors.paimon.read.planning import run_files, scanned_range, section_reader
from spark_jobs.connectors.paimon.read.spark_reader import (
    StoredColumns,
    files_for_spark,
    read_by_spark,
    spark_schema,
)
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.connectors.shared.read.scans import TASKS_PER_CORE, arrow_rows
from spark_jobs.datafiles.file_formats import is_avro, is_parquet
from spark_jobs.errors import NotSupportedError
from spark_jobs.spark_reads.parquet_rows import ROW_ID_TYPE
from spark_jobs.spi.arrow_rows import ArrowRows
from spark_jobs.spi.arrow_tasks import ScanTasks, map_tasks
from spark_jobs.spi.evidence import DynamicFilter
from spark_jobs.spi.rows import ROW_ID
from spark_jobs.spi.tables import PlannedFile, TableHandle
from spark_jobs.storage.files import in_parallel

if TYPE_CHECKING:
    import pyarrow.fs as pafs
    from pyspark.sql import DataFrame, SparkSession

Reader = Literal["auto", "spark", "pyarrow"]


class PaimonScan:
    """Implements ``ConnectorScan``; the row id is ``struct<file: int, position: bigint>``.

    Executors read deletion vectors from ``filesystem``, and pyarrow reads data files from it.
    ``reader`` selects the reader, or ``auto``. ``spark_prefix`` turns paths of ``filesystem`` into
    paths for Spark.
    """

    arrow_row_id: str | None = ROW_ID_TYPE.simpleString()

    def __init__(
        self, filesystem: pafs.FileSystem, reader: Reader = "auto", spark_prefix: str = "file://"
    ) -> None:
        self._filesystem = filesystem
        self._stored = StoredColumns(filesystem)
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
        """The rows of ``files`` with ``columns`` and the row id; CHAR and VARCHAR become STRING."""
        refuse_nanoseconds(table, columns)
        if pinned_table(table).keyed is not None:
            keys = dynamic_filter.values if dynamic_filter else {}
            return self._read_by_pyarrow(spark, table, files, columns, keys)
        if self._reader == "pyarrow" or (self._reader == "auto" and dynamic_filter is not None):
            keys = dynamic_filter.values if dynamic_filter else {}
            return self._read_by_pyarrow(spark, table, files, columns, keys)
        # Spark's readers of other formats have no row positions, and read files one by one.
        parquet = [file for file in files if _is_parquet(table, file)]
        groups = files_for_spark(table, parquet, columns, self._stored)
        chosen = {file.ordinal for group in groups for file in group.files}
        others = [file for file in files if file.ordinal not in chosen]
        rows = read_by_spark(spark, table, groups, columns, self._filesystem, self._spark_prefix)
        if not others:
            return rows
        return rows.union(self._read_by_pyarrow(spark, table, others, columns, {}))

    def _read_by_pyarrow(
        self,
        spark: SparkSession,
        table: TableHandle,
        files: Sequence[PlannedFile],
        columns: Sequence[str],
        keys: Mapping[str, pa.Array],
    ) -> DataFrame:
        types = spark_types(spark, table, columns)
        rows = self._arrow_rows(spark, table, files, types, keys)
        read = [*types.values(), ROW_ID_TYPE]
        schema = StructType([StructField(f"c{i}", kind) for i, kind in enumerate(read)])
        return map_tasks(spark, len(rows.files), rows.function, schema).toDF(*columns, ROW_ID)

    def arrow_rows(
        self,
        spark: SparkSession | None,
        table: TableHandle,
        files: Sequence[PlannedFile],
        columns: Sequence[str],
        dynamic_filter: DynamicFilter | None = None,
        tasks_per_core: int = TASKS_PER_CORE,
    ) -> ArrowRows | None:
        """The rows of ``files`` with ``columns``, then the row id, read with pyarrow.

        Raises:
            NotSupportedError: a column has timestamps that Spark would round.
        """
        if spark is None:
            return None
        refuse_nanoseconds(table, columns)
        keys = dynamic_filter.values if dynamic_filter else {}
        types = spark_types(spark, table, columns)
        return self._arrow_rows(spark, table, files, types, keys, tasks_per_core)

    def count_rows(self, table: TableHandle, files: Sequence[PlannedFile]) -> int:
        """The number of merged rows of sections, by their keys.

        Raises:
            CatalogError: DATA_FILE_UNREADABLE.
        """
        pinned = pinned_table(table)
        assert pinned.keyed is not None  # noqa: S101
        reader = section_reader(pinned, pinned.keyed, self._filesystem)
        sections = [run_files(pinned, file.ordinal) for file in files]
        return sum(in_parallel(lambda each: _row_count(reader, each), sections))

    def _arrow_rows(
        self,
        spark: SparkSession,
        table: TableHandle,
        files: Sequence[PlannedFile],
        types: Mapping[str, DataType],
        keys: Mapping[str, pa.Array],
        tasks_per_core: int = TASKS_PER_CORE,
    ) -> ArrowRows:
        pinned = pinned_table(table)
        if any(is_avro(path) for file in files for path in _paths(pinned, file)):
            require_avro_reader(spark)
        fields = tuple(pa.field(name, arrow_type(kind)) for name, kind in types.items())
        if pinned.keyed is not None:
            sections = {
                file.ordinal: ScannedSection(file.ordinal, run_files(pinned, file.ordinal))
                for file in files
            }
            of_keys = {name: keys[name] for name in keys if name in pinned.keyed.key}
            reader = section_reader(pinned, pinned.keyed, self._filesystem)
            keyed = KeyedScan(reader, fields, of_keys)
            return arrow_rows(spark, files, keyed, sections, tasks_per_core)
        if pinned.evolves_columns:
            ranges = {file.ordinal: scanned_range(pinned, file.ordinal) for file in files}
            of_ranges = RangeScan(self._filesystem, fields, keys, pinned.files.mappings)
            return arrow_rows(spark, files, of_ranges, ranges, tasks_per_core)
        scanned = {file.ordinal: _scanned_file(pinned, file) for file in files}
        scan = ArrowScan(self._filesystem, fields, keys, pinned.files.mappings)
        return arrow_rows(spark, files, scan, scanned, tasks_per_core)


def _row_count(reader: SectionReader, files: Sequence[RunFile]) -> int:
    return sum(window.num_rows for window in reader.rows(files, ()))


def _paths(table: PinnedTable, file: PlannedFile) -> list[str]:
    """The paths of the files that are read for a unit."""
    if not table.evolves_columns:
        return [file.path]
    return [
        table.files.located_entries[index][0] for index in table.files.units[file.ordinal].files
    ]


def _is_parquet(table: TableHandle, file: PlannedFile) -> bool:
    paths = _paths(pinned_table(table), file)
    return len(paths) == 1 and is_parquet(paths[0])


def _scanned_file(pinned: PinnedTable, file: PlannedFile) -> ScannedFile:
    vector = pinned.files.vectors[file.path.rpartition("/")[2]] if file.deleted_row_count else None
    schema_id = pinned.columns.mapped_schema(pinned.files.unit_entries(file.ordinal)[0])
    return ScannedFile(file.ordinal, file.path, vector, schema_id, file.row_count)


def require_avro_reader(spark: SparkSession) -> None:
    """Let executors check that they can read Avro files, before any data is read."""
    count = spark.sparkContext.defaultParallelism
    check: ScanTasks[object] = ScanTasks(AvroCheck(), ((),) * count)
    map_tasks(spark, count, check, "nothing int").collect()


def spark_types(
    spark: SparkSession, table: TableHandle, columns: Sequence[str]
) -> dict[str, DataType]:
    """The Spark types of ``columns`` in a frame, in order."""
    schema = spark.createDataFrame([], spark_schema(table)).schema
    return {name: schema[name].dataType for name in columns}


def refuse_nanoseconds(table: TableHandle, columns: Sequence[str]) -> None:
    """Refuse columns whose values Spark would round; raises NotSupportedError."""
    for column in pinned_table(table).schema.columns:
        if column.name in columns and has_nanoseconds(column.type):
            raise NotSupportedError(
                f"Column {column.name} has timestamps of precision 7 to 9, which Spark does not "
                "read exactly.",
                "Change the column to TIMESTAMP(6), or read a table without it.",
            )
