"""The source of a statement: opened, then materialised once.

Spark's ``cache()`` would compute a lost block again, and two attempts of one task may both leave
blocks of a nondeterministic source behind. So the source is written to files beside the warehouse's
tables, and only the files that successful tasks reported are read: every later step sees the same
rows, whatever dies.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, SparkRuntimeException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    MapType,
    NullType,
    StructField,
    StructType,
)

from spark_jobs.contract.request import FileSource, Source, SqlSource, TableName
from spark_jobs.engine.arrow_source import read_files, read_source, spark_knows, whole_file
from spark_jobs.engine.catalyst import error_condition
from spark_jobs.engine.names import quote
from spark_jobs.engine.spill import REPORT_SCHEMA, SpillWriter
from spark_jobs.errors import CatalogError, ErrorCode, NotSupportedError
from spark_jobs.spi.arrow_tasks import map_in_arrow
from spark_jobs.spi.paths import escape_glob
from spark_jobs.spi.storage import make_folder
from spark_jobs.spi.tables import TableHandle

if TYPE_CHECKING:
    from spark_jobs.spi.connector import Connector
    from spark_jobs.spi.storage import FileLocation, WarehouseStorage

_ROW = "row"
_NO_FORMAT = "[DATA_SOURCE_NOT_FOUND]"
_REFUSED = (AnalysisException, SparkRuntimeException)
_NOT_FOUND = ("PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA")


@dataclass(frozen=True, slots=True)
class OpenSource:
    """A source that has not been read. ``is_pinned``: it has the same rows whenever it is read.

    ``table``: it is this table of the connector, pinned; ``files``: it is these files, at
    ``place`` if Spark has no file system for them; both None: something else.
    """

    frame: DataFrame
    is_pinned: bool
    table: TableHandle | None = None
    files: FileSource | None = None
    place: FileLocation | None = None


@dataclass(frozen=True, slots=True)
class MaterializedSource:
    """The source's rows as files.

    ``byte_size`` is their size in memory as Arrow; ``files`` are paths with the part of each in it,
    ``stored_names`` say what a column of ``frame`` is called in them.
    """

    frame: DataFrame
    row_count: int
    byte_size: int
    files: Mapping[str, int]
    stored_names: Mapping[str, str]


def open_sources(
    spark: SparkSession, sources: Sequence[Source], connector: Connector, target: TableHandle
) -> dict[str, OpenSource]:
    """``sources`` by name, each with a temporary view of that name.

    A SQL source sees those before it. Each table is pinned once, however many sources name it;
    ``target`` is pinned already.

    Raises:
        CatalogError: SOURCE_NOT_FOUND or SOURCE_UNREADABLE, naming the source.
    """
    opened: dict[str, OpenSource] = {}
    pinned = {target.name: target}
    for source in sources:
        try:
            opened[source.name] = _open(spark, source, connector, pinned)
        except (*_REFUSED, Py4JJavaError) as error:
            raise _unreadable(source, error) from None
        opened[source.name].frame.createOrReplaceTempView(source.name)
    return opened


def close_sources(spark: SparkSession, sources: Sequence[Source]) -> None:
    """Forget the views that ``open_sources`` made."""
    for source in sources:
        spark.catalog.dropTempView(source.name)


def materialize(
    spark: SparkSession,
    source: DataFrame,
    columns: Iterable[str],
    storage: WarehouseStorage,
    folder: str,
) -> MaterializedSource:
    """Evaluate ``columns`` of ``source`` once, into parquet files below ``folder``.

    ``folder`` is relative to the warehouse. The frame has the columns under their own names.

    Raises:
        NotSupportedError: a column of a type that parquet can not hold.
    """
    schema = source.schema
    fields = [schema[name] for name in sorted(columns)]
    _refuse_unstorable(fields)
    # The constant carries the count of rows where no column is needed; generated names keep
    # characters out of the files that parquet readers treat in their own way.
    kept = [field for field in fields if not isinstance(field.dataType, NullType)]
    renamed = [F.col(quote(field.name)).alias(f"c{i}") for i, field in enumerate(kept)]
    narrowed = source.select(F.lit(True).alias(_ROW), *renamed)
    folder = f"{folder}/source-{uuid.uuid4().hex}"
    writer = SpillWriter(storage.filesystem, f"{storage.root}/{folder}")
    make_folder(storage.filesystem, writer.folder)
    reports = map_in_arrow(narrowed, writer, REPORT_SCHEMA).collect()
    stored = StructType(
        [StructField(_ROW, BooleanType())]
        + [StructField(f"c{i}", field.dataType) for i, field in enumerate(kept)]
    )
    frame = _read(spark, storage, [f"{folder}/{each['file']}" for each in reports], stored)
    stored_names = {field.name: f"c{i}" for i, field in enumerate(kept)}
    restored = [
        F.col(stored_names[f.name]).alias(f.name) if f.name in stored_names else _null(f.name)
        for f in fields
    ]
    return MaterializedSource(
        frame=frame.select(*restored),
        row_count=sum(report["row_count"] for report in reports),
        byte_size=sum(report["byte_size"] for report in reports),
        files={f"{writer.folder}/{each['file']}": each["byte_size"] for each in reports},
        stored_names=stored_names,
    )


def _open(
    spark: SparkSession,
    source: Source,
    connector: Connector,
    pinned: dict[TableName, TableHandle],
) -> OpenSource:
    if isinstance(source, FileSource):
        return _open_files(spark, source, connector)
    if isinstance(source, SqlSource):
        return OpenSource(spark.sql(source.query), is_pinned=False)
    if source.table not in pinned:
        pinned[source.table] = connector.metadata.load_table(source.table)
    table = pinned[source.table]
    files = connector.metadata.plan_files(table)
    frame = connector.scan.read(spark, table, files, table.column_names)
    frame = frame.select(*map(quote, table.column_names))
    return OpenSource(frame, is_pinned=True, table=table)


def _open_files(spark: SparkSession, source: FileSource, connector: Connector) -> OpenSource:
    place = None if spark_knows(spark, source.path) else connector.locate(source.path)
    if place is not None:
        frame = read_source(spark, source, place)
        return OpenSource(frame, is_pinned=False, files=source, place=place)
    reader = spark.read.format(source.format).options(**source.options)
    frame = (reader.schema(source.schema) if source.schema else reader).load(source.path)
    if not frame.inputFiles():
        raise CatalogError(
            ErrorCode.SOURCE_NOT_FOUND,
            f"source {source.name}: {source.path} holds no files",
            "Check the path; for a source that may be empty, write a file without rows.",
        )
    return OpenSource(frame, is_pinned=False, files=source)


def _read(
    spark: SparkSession, storage: WarehouseStorage, names: list[str], schema: StructType
) -> DataFrame:
    """The files ``names`` of the warehouse."""
    if not names:
        return spark.createDataFrame([], schema)
    if storage.uri is None:
        files = [whole_file(f"{storage.root}/{name}") for name in names]
        return read_files(spark, storage.filesystem, files, schema)
    # Written by pyarrow, which knows no other calendar than the proleptic Gregorian one.
    reader = spark.read.schema(schema).option("datetimeRebaseMode", "CORRECTED")
    return reader.parquet(*[escape_glob(f"{storage.uri}/{name}") for name in names])


def _null(name: str) -> Column:
    return F.lit(None).alias(name)


def _refuse_unstorable(fields: Sequence[StructField]) -> None:
    for field in fields:
        if _holds_interval(field.dataType):
            raise NotSupportedError(
                f"source column {field.name}: {field.dataType.simpleString()} can not be kept",
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


def _unreadable(source: Source, error: Exception) -> Exception:
    place = f" ({source.format} {source.path})" if isinstance(source, FileSource) else ""
    if isinstance(error, _REFUSED):
        missing = error_condition(error).startswith(_NOT_FOUND)
        problem = str(error).strip().splitlines()[0]
    elif _NO_FORMAT in str(error):
        missing, problem = False, "Spark has no such format"
    else:
        return error
    return CatalogError(
        ErrorCode.SOURCE_NOT_FOUND if missing else ErrorCode.SOURCE_UNREADABLE,
        f"source {source.name}{place}: {problem}",
        "Check the source's path, format and query.",
    )
