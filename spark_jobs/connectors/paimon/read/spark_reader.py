"""Reads target rows with Spark's vectorised Parquet reader, if it can. Driver only.

Spark's reader gives NULLs for a column or nested field that a file lacks, and converts some types
silently: a DECIMAL becomes its unscaled digits where the schema says BIGINT.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.connectors.paimon.format.vectors import read_vector
from spark_jobs.connectors.paimon.library import table_schema
from spark_jobs.connectors.paimon.library.metadata_checks import reading_metadata
from spark_jobs.connectors.paimon.table.table_handle import pinned_table
from spark_jobs.contract.sql_text import quote
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.datafiles.recorded_columns import require_recorded
from spark_jobs.spark_reads.mapped_columns import ReadColumns, mapped_columns
from spark_jobs.spark_reads.marked_rows import without_marked
from spark_jobs.spark_reads.parquet_rows import ORDINAL, POSITION, parquet_rows, row_id
from spark_jobs.spark_reads.readable_files import columns_not_for_spark
from spark_jobs.spi.tables import Column, PlannedFile, TableHandle
from spark_jobs.storage.files import in_parallel

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class _Compared:
    """The columns of a file that were compared.

    ``others`` are those that Spark does not read, ``units`` those with times of another unit than
    recorded: writers choose it.
    """

    names: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    units: frozenset[str] = frozenset()


_NONE = _Compared()


@dataclass(frozen=True, slots=True)
class StoredColumns:
    """Compares the footers of files with schemas, and remembers which columns were compared.

    Data files never change, and a statement may read them several times.
    """

    filesystem: pafs.FileSystem
    _compared: dict[str, _Compared] = field(default_factory=dict, init=False, repr=False)

    def for_spark(self, paths: Sequence[str], recorded: Sequence[pa.Field]) -> Collection[str]:
        """Those of ``paths`` whose columns Spark reads; each must hold ``recorded``, its schema's.

        Raises:
            NotSupportedError: a file does not hold what its schema says; names file and column.
            CatalogError: DATA_FILE_UNREADABLE: a file is missing or damaged; METADATA_UNREADABLE:
                the driver may not read it.
            InternalError: STORAGE_UNAVAILABLE.
        """
        names = frozenset(column.name for column in recorded)
        new = [path for path in paths if not names <= self._compared.get(path, _NONE).names]
        found = in_parallel(partial(self._compare, recorded), new)
        self._compared.update(zip(new, found, strict=True))
        return {path for path in paths if not names & self._compared.get(path, _NONE).others}

    def exact(self, paths: Sequence[str], recorded: Sequence[pa.Field]) -> frozenset[str]:
        """Those of the columns ``recorded`` that all files, compared before, store as recorded."""
        others = frozenset[str]().union(*(self._compared.get(path, _NONE).units for path in paths))
        return frozenset(column.name for column in recorded) - others

    def _compare(self, recorded: Sequence[pa.Field], path: str) -> _Compared:
        with (
            reading_metadata(path),
            reading_file(path),
            self.filesystem.open_input_file(path) as stream,
        ):
            metadata = pq.ParquetFile(stream).metadata
            stored_schema = metadata.schema.to_arrow_schema()
            require_recorded(stored_schema, recorded)
            wanted = {each.name: each.type for each in recorded}
            units = frozenset(
                name
                for name, kind in wanted.items()
                if pa.types.is_timestamp(kind) and stored_schema.field(name).type != kind
            )
            return _Compared(frozenset(wanted), columns_not_for_spark(metadata, wanted), units)


def spark_schema(table: TableHandle) -> str:
    """All columns as Spark reads them, in DDL form."""
    return ", ".join(f"{quote(c.name)} {_spark_readable(c)}" for c in table.columns)


def _spark_readable(column: Column) -> str:
    """The column's type with STRING for CHAR and VARCHAR, which a reader's schema cannot have."""
    return re.sub(r"\b(?:var)?char\(\d+\)", "string", column.type)


def _columns_by_schema(
    table: TableHandle, files: Sequence[PlannedFile], columns: Sequence[str]
) -> list[ReadColumns]:
    """How to read ``columns`` from each group of ``files`` that were written with one schema."""
    target = pinned_table(table)
    groups: dict[int | None, list[PlannedFile]] = {}
    for file in files:
        schema_id = target.columns.mapped_schema(target.files.unit_entries(file.ordinal)[0])
        groups.setdefault(schema_id, []).append(file)
    read_columns = []
    for schema_id, members in groups.items():
        if schema_id is None:
            stored = table_schema.arrow_schema(target.table)
            recorded = [stored.field(name) for name in columns]
            today = [F.col(quote(name)) for name in columns]
            read_columns.append(ReadColumns(members, recorded, spark_schema(table), today))
            continue
        by_name = {each.field.name: each for each in target.files.mappings[schema_id]}
        read_columns.append(mapped_columns(members, [by_name[name] for name in columns]))
    return read_columns


def files_for_spark(
    table: TableHandle,
    files: Sequence[PlannedFile],
    columns: Sequence[str],
    stored: StoredColumns,
) -> list[ReadColumns]:
    """How to read ``columns`` from those of ``files``, which are parquet, that Spark can read.

    The driver compares the files with their schemas by ``stored``.

    Raises:
        NotSupportedError: a file does not hold what its schema says; names file and column.
        CatalogError: DATA_FILE_UNREADABLE: a file is missing or damaged; METADATA_UNREADABLE: the
            driver may not read it.
        InternalError: STORAGE_UNAVAILABLE.
    """
    readable = []
    for group in _columns_by_schema(table, files, columns):
        paths = stored.for_spark([file.path for file in group.files], group.recorded)
        chosen = [file for file in group.files if file.path in paths]
        if chosen:
            exact = stored.exact([file.path for file in chosen], group.recorded)
            readable.append(replace(group, files=chosen, exact=exact))
    return readable


def read_by_spark(
    spark: SparkSession,
    table: TableHandle,
    groups: Sequence[ReadColumns],
    columns: Sequence[str],
    filesystem: pafs.FileSystem,
    prefix: str,
) -> DataFrame:
    """The rows of the files of ``groups`` with ``columns`` and the row id.

    Executors read deletion vectors from ``filesystem``; ``prefix`` turns its paths into Spark's.
    """
    files = [file for group in groups for file in group.files]
    if not files:
        empty = spark.createDataFrame([], spark_schema(table))
        return empty.select(*map(quote, columns), row_id(F.lit(0), F.lit(0)))
    located = parquet_rows(spark, files, groups, prefix)
    known = pinned_table(table).files.vectors
    marked = {file.ordinal: file.path for file in files if file.deleted_row_count}
    vectors = {each: known[path.rpartition("/")[2]] for each, path in marked.items()}
    live = without_marked(located, files, vectors, partial(read_vector, filesystem))
    return live.select(*map(quote, columns), row_id(F.col(ORDINAL), F.col(POSITION)))
