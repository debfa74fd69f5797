"""Reads rows with Spark's vectorised Parquet reader or with pyarrow. Driver only.

Spark's reader is faster if all rows are needed. If a dynamic filter leaves few rows, pyarrow
decodes the other columns only for those.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F

from spark_jobs.connectors.iceberg.format.deletes import DeletedRows
from spark_jobs.connectors.iceberg.format.file_columns import Constants, file_mappings
from spark_jobs.connectors.iceberg.format.schema import IcebergField, spark_type
from spark_jobs.connectors.iceberg.read.arrow_scan import ArrowScan, ScannedFile
from spark_jobs.connectors.iceberg.read.scanned_files import scanned_file
from spark_jobs.connectors.iceberg.table.metadata_errors import reading_metadata
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable, pinned_table
from spark_jobs.connectors.shared.read.scans import TASKS_PER_CORE, arrow_rows
from spark_jobs.contract.sql_text import quote
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.file_formats import is_for_pyarrow
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.datafiles.parquet.footer import readable_metadata
from spark_jobs.spark_paths import is_readable
from spark_jobs.spark_reads.mapped_columns import mapped_columns
from spark_jobs.spark_reads.marked_rows import without_marked
from spark_jobs.spark_reads.parquet_rows import ORDINAL, POSITION, ROW_ID_TYPE, parquet_rows, row_id
from spark_jobs.spark_reads.readable_files import is_for_spark
from spark_jobs.spi.arrow_rows import ArrowRows
from spark_jobs.spi.arrow_tasks import map_tasks
from spark_jobs.spi.evidence import DynamicFilter
from spark_jobs.spi.rows import ROW_ID
from spark_jobs.spi.tables import PlannedFile, TableHandle
from spark_jobs.storage.files import in_parallel

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Reader = Literal["auto", "spark", "pyarrow"]


class IcebergScan:
    """Implements ``ConnectorScan``; the row id is ``struct<file: int, position: bigint>``.

    ``reader`` selects the reader, or ``auto``.
    """

    arrow_row_id: str | None = ROW_ID_TYPE.simpleString()

    def __init__(self, reader: Reader = "auto") -> None:
        self._reader = reader

    def read(
        self,
        spark: SparkSession,
        table: TableHandle,
        files: Sequence[PlannedFile],
        columns: Sequence[str],
        dynamic_filter: DynamicFilter | None = None,
    ) -> DataFrame:
        """The rows of ``files`` with ``columns`` and the row id."""
        pinned = pinned_table(table)
        scanned = {each.ordinal: scanned_file(pinned, table.name, each.ordinal) for each in files}
        prefix = pinned.storage.spark_prefix
        if self._reader == "pyarrow" or (self._reader == "auto" and dynamic_filter is not None):
            prefix = None
        mapped = {} if prefix is None else _mapped(pinned, files, columns, scanned)
        others = [each for each in files if each.ordinal not in mapped]
        keys = dynamic_filter.values if dynamic_filter else {}
        by_pyarrow = _read_by_pyarrow(spark, pinned, others, columns, scanned, keys)
        if prefix is None or not mapped:
            return by_pyarrow
        chosen = [each for each in files if each.ordinal in mapped]
        rows = _read_by_spark(spark, pinned, chosen, columns, scanned, mapped)
        return rows.union(by_pyarrow) if others else rows

    def arrow_rows(
        self,
        spark: SparkSession | None,
        table: TableHandle,
        files: Sequence[PlannedFile],
        columns: Sequence[str],
        dynamic_filter: DynamicFilter | None = None,
        tasks_per_core: int = TASKS_PER_CORE,
    ) -> ArrowRows:
        """The rows of ``files`` with ``columns``, then the row id, read with pyarrow.

        Raises:
            NotSupportedError: a file cannot be read correctly here; gives the reason.
        """
        pinned = pinned_table(table)
        scanned = {each.ordinal: scanned_file(pinned, table.name, each.ordinal) for each in files}
        keys = dynamic_filter.values if dynamic_filter else {}
        scan = arrow_scan(pinned, columns, keys)
        return arrow_rows(spark, files, scan, scanned, tasks_per_core)

    def count_rows(self, table: TableHandle, files: Sequence[PlannedFile]) -> int:
        """The number of live rows of files whose deletes may be about the same rows.

        Raises:
            NotSupportedError: a file cannot be read correctly here; gives the reason.
            CatalogError: DATA_FILE_UNREADABLE, METADATA_UNREADABLE.
        """
        pinned = pinned_table(table)
        scanned = [scanned_file(pinned, table.name, each.ordinal).deletes for each in files]
        rows = DeletedRows(pinned.storage.filesystem)
        deleted = in_parallel(lambda each: len(rows.positions(each)), scanned)
        return sum(each.row_count for each in scanned) - sum(deleted)


Scanned = Mapping[int, ScannedFile]


def _mapped(
    pinned: PinnedTable, files: Sequence[PlannedFile], columns: Sequence[str], scanned: Scanned
) -> dict[int, tuple[FieldMapping, ...]]:
    """The mappings of the files that Spark can read, by ordinal.

    Spark tells the files of its rows by name. A value of a partition is of one file only, and too
    many groups of files would be too many plans.
    """
    names = Counter(_name(each) for each in files)
    named = [
        planned_file
        for planned_file in files
        if names[_name(planned_file)] == 1
        and is_readable(_name(planned_file))
        and not is_for_pyarrow(planned_file.path)
    ]
    fields = _columns(pinned, columns)

    def mappings(file: PlannedFile) -> tuple[FieldMapping, ...] | None:
        constants = scanned[file.ordinal].constants
        metadata, field_mappings = _mappings(pinned, fields, file, constants)
        pairs = zip(fields, field_mappings, strict=True)
        if any(each.source is None and field.id in constants for field, each in pairs):
            return None
        return field_mappings if is_for_spark(metadata, field_mappings) else None

    found = in_parallel(mappings, named)
    pairs = zip(named, found, strict=True)
    return {file.ordinal: each for file, each in pairs if each is not None}


def _name(file: PlannedFile) -> str:
    return file.path.rpartition("/")[2]


def _columns(pinned: PinnedTable, names: Sequence[str]) -> tuple[IcebergField, ...]:
    by_name = {each.name: each for each in pinned.columns}
    return tuple(by_name[name] for name in names)


def _read_by_spark(
    spark: SparkSession,
    pinned: PinnedTable,
    files: Sequence[PlannedFile],
    columns: Sequence[str],
    scanned: Scanned,
    mapped: Mapping[int, tuple[FieldMapping, ...]],
) -> DataFrame:
    groups: dict[tuple[FieldMapping, ...], list[PlannedFile]] = {}
    for file in files:
        groups.setdefault(mapped[file.ordinal], []).append(file)
    read = [mapped_columns(members, mappings) for mappings, members in groups.items()]
    assert pinned.storage.spark_prefix is not None  # noqa: S101
    located = parquet_rows(spark, files, read, pinned.storage.spark_prefix)
    deletes = [scanned[file.ordinal].deletes for file in files]
    marks = {each.ordinal: each for each in deletes if not each.are_none}
    positions = DeletedRows(pinned.storage.filesystem).positions
    live = without_marked(located, files, marks, positions)
    return live.select(*map(quote, columns), row_id(F.col(ORDINAL), F.col(POSITION)))


def _mappings(
    pinned: PinnedTable, fields: Sequence[IcebergField], file: PlannedFile, constants: Constants
) -> tuple[pq.FileMetaData, tuple[FieldMapping, ...]]:
    """The footer of a file, and how it holds ``fields``."""
    with (
        reading_metadata(file.path),
        reading_file(file.path),
        pinned.storage.filesystem.open_input_file(file.path) as stream,
    ):
        metadata = readable_metadata(stream)
        found = metadata.schema.to_arrow_schema()
        return metadata, file_mappings(fields, found, pinned.name_mapping, constants)


def _read_by_pyarrow(
    spark: SparkSession,
    pinned: PinnedTable,
    files: Sequence[PlannedFile],
    columns: Sequence[str],
    scanned: Scanned,
    keys: Mapping[str, pa.Array],
) -> DataFrame:
    rows = arrow_rows(spark, files, arrow_scan(pinned, columns, keys), scanned)
    kinds = [spark_type(each.type) for each in _columns(pinned, columns)]
    kinds.append(ROW_ID_TYPE.simpleString())
    schema = ", ".join(f"c{i} {kind}" for i, kind in enumerate(kinds))
    return map_tasks(spark, len(rows.files), rows.function, schema).toDF(*columns, ROW_ID)


def arrow_scan(
    pinned: PinnedTable,
    columns: Sequence[str],
    keys: Mapping[str, pa.Array],
    *more: IcebergField,
) -> ArrowScan:
    """What reads ``columns`` of the table's files in tasks; only rows with one of the ``keys``.

    ``more``: columns that are not the table's.
    """
    return ArrowScan(
        pinned.storage.filesystem,
        (*_columns(pinned, columns), *more),
        _columns(pinned, list(keys)),
        pinned.name_mapping,
        keys,
    )
