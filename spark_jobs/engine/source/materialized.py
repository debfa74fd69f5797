"""Rows that are evaluated once and kept as files in the workspace.

Spark's ``cache()`` would recompute a lost block, and two attempts of one task may both leave
blocks of a nondeterministic source behind. So rows are written to files, and only the files that
successful tasks reported are read: every later step sees the same rows, whatever fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    MapType,
    NullType,
    StructField,
    StructType,
)

from spark_jobs.contract.operation_files import new_source_folder
from spark_jobs.contract.sql_text import quote
from spark_jobs.engine.runtime.arrow_batches import arrow_batches
from spark_jobs.engine.runtime.lease import Lease, LeasedTask
from spark_jobs.engine.runtime.spill import REPORT_SCHEMA, SpilledFile, SpillWriter
from spark_jobs.engine.runtime.sql_text import named
from spark_jobs.engine.source.arrow_source import read_files, whole_file
from spark_jobs.engine.source.spark_written import spark_can_write, written_by_spark
from spark_jobs.errors import ErrorCode, InternalError, NotSupportedError
from spark_jobs.pushed_filters import decided_by_rows
from spark_jobs.spark_paths import escape_glob
from spark_jobs.spi.arrow_tasks import map_in_arrow
from spark_jobs.spi.file_index import FileIndex
from spark_jobs.storage.files import make_folder

if TYPE_CHECKING:
    from spark_jobs.engine.source.source_files import SourceFiles
    from spark_jobs.spi.storage import WarehouseStorage

_ROW = "row"


@dataclass(frozen=True, slots=True)
class MaterializedSource:
    """Rows of a source that are the same whenever they are read.

    ``byte_size`` is their size in memory as Arrow. ``files`` in ``filesystem``, if they are known,
    map each path to its share of it; they are Parquet. ``stored_names`` maps the columns of
    ``frame`` to their names in the files, ``column_bytes`` to their sizes, if known. ``listed`` are
    files of others that are read in place.
    """

    frame: DataFrame
    row_count: int
    byte_size: int
    files: Mapping[str, int]
    stored_names: Mapping[str, str]
    filesystem: pafs.FileSystem
    column_bytes: Mapping[str, int] = field(default_factory=dict)
    listed: SourceFiles | None = None

    def require_unchanged(self) -> None:
        """Check, after all reading, that it had the same rows each time.

        Raises:
            CatalogError: SOURCE_UNREADABLE, a file was written again.
        """
        if self.listed is not None:
            self.listed.require_unchanged()

    def narrowed(self, columns: Iterable[str]) -> MaterializedSource:
        """The same rows with only these columns."""
        names = sorted(columns)
        size = sum(self.column_bytes.get(name, 0) for name in names)
        frame = self.frame.selectExpr(*map(quote, names))
        return replace(self, frame=frame, byte_size=size if self.column_bytes else self.byte_size)

    def values(self, columns: Sequence[str]) -> list[pa.ChunkedArray] | None:
        """The values of ``columns``, read from the files; None if these do not have them."""
        names = [self.stored_names.get(name) for name in columns]
        wanted = [name for name in names if name is not None]
        if len(wanted) < len(names) or not self.files:
            return None
        tables = [self._table(path, wanted) for path in self.files]
        return [pa.concat_tables(each.select([name]) for each in tables)[0] for name in wanted]

    def _table(self, path: str, names: Sequence[str]) -> pa.Table:
        with self.filesystem.open_input_file(path) as stream, pq.ParquetFile(stream) as file:
            return file.read(columns=list(dict.fromkeys(names)))


def materialize(
    spark: SparkSession,
    source: DataFrame,
    columns: Iterable[str],
    storage: WarehouseStorage,
    folder: str,
    into: str | None = None,
) -> MaterializedSource:
    """Evaluate ``columns`` of ``source`` once, into Parquet files below ``folder``.

    ``folder``, relative to the workspace, is the scratch folder of a run that holds its lease;
    ``into`` is another folder for the files. The frame has the columns under their own names.

    Raises:
        CommitError: RUN_GIVEN_UP.
        InternalError: STORAGE_UNAVAILABLE, Spark does not see a file.
        NotSupportedError: a column of a type that Parquet cannot hold.
    """
    schema = source.schema
    fields = [schema[name] for name in sorted(columns)]
    refuse_unstorable(fields)
    # The constant carries the row count if no column is needed. Generated names avoid characters
    # that Parquet readers treat specially.
    stored_names = {field.name: f"c{i}" for i, field in enumerate(fields)}
    renamed = [named(_storable(field), stored_names[field.name]) for field in fields]
    narrowed = source.selectExpr(named("TRUE", _ROW), *renamed)
    files = _written(narrowed, storage, folder, into or new_source_folder(folder))
    for column in fields:
        if isinstance(column.dataType, NullType):
            del stored_names[column.name]
    return MaterializedSource(
        frame=spilled_frame(spark, storage, [each.name for each in files], fields, stored_names),
        row_count=sum(each.row_count for each in files),
        byte_size=sum(each.byte_size for each in files),
        files={f"{storage.root}/{each.name}": each.byte_size for each in files},
        stored_names=stored_names,
        filesystem=storage.filesystem,
    )


def _storable(field: StructField) -> str:
    """A column as Parquet can hold it: one without a type is evaluated, because it may raise."""
    name = quote(field.name)
    return f"CAST({name} AS BOOLEAN)" if isinstance(field.dataType, NullType) else name


def _written(
    rows: DataFrame, storage: WarehouseStorage, scratch: str, folder: str
) -> list[SpilledFile]:
    """Evaluate ``rows`` once, into files in ``folder`` with names relative to the workspace.

    Spark writes them where it can; otherwise tasks get them as Arrow, which takes longer.

    Raises:
        CommitError: RUN_GIVEN_UP.
    """
    lease = Lease(storage.filesystem, f"{storage.root}/{scratch}")
    if spark_can_write(rows.schema, storage):
        files = written_by_spark(rows, storage, folder)
        lease.require()
    else:
        place = f"{storage.root}/{folder}"
        make_folder(storage.filesystem, place)
        task = LeasedTask(SpillWriter(storage.filesystem, place), lease, place)
        with arrow_batches(rows):
            reports = map_in_arrow(rows, task, REPORT_SCHEMA).collect()
        files = [SpilledFile(*row) for row in reports]
    return [each._replace(name=f"{folder}/{each.name}") for each in files]


def spilled_frame(
    spark: SparkSession,
    storage: WarehouseStorage,
    names: list[str],
    fields: Sequence[StructField],
    stored_names: Mapping[str, str],
) -> DataFrame:
    """The rows of the workspace's files ``names``, with the columns ``fields``.

    ``stored_names`` maps columns to their names in the files; a column without one is NULL.
    """
    stored = StructType(
        [StructField(_ROW, BooleanType())]
        + [
            StructField(stored_names[field.name], _nullable(field.dataType))
            for field in fields
            if field.name in stored_names
        ]
    )
    frame = _read(spark, storage, names, stored)
    return frame.selectExpr(*(named(stored_names.get(f.name, "NULL"), f.name) for f in fields))


def _read(
    spark: SparkSession, storage: WarehouseStorage, names: list[str], schema: StructType
) -> DataFrame:
    """The files ``names`` of the workspace.

    Raises:
        InternalError: STORAGE_UNAVAILABLE, Spark does not see one of them.
    """
    if not names:
        return spark.createDataFrame([], schema)
    if storage.uri is None:
        files = [whole_file(f"{storage.root}/{name}") for name in names]
        return read_files(spark, storage.filesystem, files, schema)
    # All files have dates of the proleptic Gregorian calendar, but those of pyarrow do not say so.
    reader = spark.read.schema(schema).option("datetimeRebaseMode", "CORRECTED")
    frame = reader.parquet(*[escape_glob(f"{storage.uri}/{name}") for name in names])
    count = FileIndex.of(frame).file_count
    if count != len(names):
        raise InternalError(
            ErrorCode.STORAGE_UNAVAILABLE,
            f"Spark sees {count} of {len(names)} files that this job has written to {storage.uri}.",
            "Check that the driver's Java may list the workspace.",
        )
    return decided_by_rows(frame)


def _nullable(kind: DataType) -> DataType:
    """The type with nullable parts, as the files have them."""
    if isinstance(kind, StructType):
        return StructType([StructField(each.name, _nullable(each.dataType)) for each in kind])
    if isinstance(kind, ArrayType):
        return ArrayType(_nullable(kind.elementType))
    if isinstance(kind, MapType):
        return MapType(_nullable(kind.keyType), _nullable(kind.valueType))
    return kind


def refuse_unstorable(fields: Sequence[StructField]) -> None:
    """Refuse columns that Parquet cannot hold.

    Raises:
        NotSupportedError: naming the column.
    """
    for column in fields:
        if _holds_interval(column.dataType):
            raise NotSupportedError(
                f"source column {column.name}: {column.dataType.simpleString()} cannot be kept",
                "Cast it in the source.",
            )


def _holds_interval(type_: DataType) -> bool:
    if isinstance(type_, ArrayType):
        return _holds_interval(type_.elementType)
    if isinstance(type_, MapType):
        return _holds_interval(type_.keyType) or _holds_interval(type_.valueType)
    if isinstance(type_, StructType):
        return any(_holds_interval(field.dataType) for field in type_)
    # By name: PySpark 3.5 has no class for CalendarIntervalType.
    return type(type_).__name__.endswith("IntervalType")
