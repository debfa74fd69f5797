"""Open sources of a statement: their columns are known, their rows have not been read yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
    PySparkException,
    SparkRuntimeException,
)
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType, StructField, StructType

from spark_jobs.contract.cdc import CdcSource
from spark_jobs.contract.deduplication import DeduplicatedSource
from spark_jobs.contract.request import FileSource, Source, SqlSource, TableSource
from spark_jobs.contract.source_names import placed_source, source_text
from spark_jobs.contract.sources import DerivedSource, OutsideSource
from spark_jobs.contract.sql_text import quote
from spark_jobs.contract.text_limits import DEFAULT_LIMITS, TextLimits
from spark_jobs.engine.analysis.analyzer import declared_types
from spark_jobs.engine.analysis.catalyst import reads_beside_views, view_columns
from spark_jobs.engine.analysis.char_columns import char_lengths, padded
from spark_jobs.engine.analysis.opaque_columns import refuse_opaque_reads, with_opaque_columns
from spark_jobs.engine.analysis.text_rules import require_read_files
from spark_jobs.engine.events.event_rows import event_rows
from spark_jobs.engine.events.last_events import last_events
from spark_jobs.engine.runtime.failures import shortened
from spark_jobs.engine.runtime.older_spark import error_condition, is_spark_4
from spark_jobs.engine.source.arrow_source import read_source, refuse_unsupported, spark_knows
from spark_jobs.engine.source.column_checks import ColumnChecks, type_names
from spark_jobs.engine.source.complete_listing import require_all_indexed
from spark_jobs.engine.source.declared_columns import declared_lengths, declared_schema
from spark_jobs.engine.source.deduplicated import deduplicated
from spark_jobs.engine.source.file_columns import FOOTER_FORMATS, NANOSECONDS, Footers, footers_of
from spark_jobs.engine.source.file_times import as_stored, with_timestamps
from spark_jobs.engine.source.footer_schema import footer_schema
from spark_jobs.engine.source.landing import Landing, is_landed, landing_of
from spark_jobs.engine.source.outside_rows import outside_rows
from spark_jobs.engine.source.pinned_tables import PinnedTables
from spark_jobs.engine.source.source_access import SourceAccess
from spark_jobs.engine.source.source_files import (
    SourceFiles,
    files_of_frame,
    located_files,
    source_files,
)
from spark_jobs.errors import CatalogError, ErrorCode, InternalError, NotSupportedError
from spark_jobs.landing.options import LISTING
from spark_jobs.pushed_filters import decided_by_rows, leave_all_to_rows
from spark_jobs.spi.file_index import FileIndex
from spark_jobs.spi.storage import FileLocation
from spark_jobs.spi.tables import TableHandle

if TYPE_CHECKING:
    from spark_jobs.engine.source.materialized import MaterializedSource
    from spark_jobs.engine.source.table_changes import ChosenChanges
    from spark_jobs.spi.connector import Connector

_NO_FORMAT = "[DATA_SOURCE_NOT_FOUND]"
_REFUSED = (AnalysisException, SparkRuntimeException)
_BAD_NAME = "java.net.URISyntaxException"
# What Spark has no name for: mostly, a store that does not answer.
_OTHER = (Py4JJavaError, IllegalArgumentException)
_NOT_FOUND = {
    "PATH_NOT_FOUND": ErrorCode.SOURCE_NOT_FOUND,
    "UNABLE_TO_INFER_SCHEMA": ErrorCode.SOURCE_NOT_FOUND,
    "TABLE_OR_VIEW_NOT_FOUND": ErrorCode.TABLE_NOT_FOUND,
}

Keyed = Callable[[CdcSource, DataFrame], DataFrame]


@dataclass(frozen=True, slots=True)
class OpenSource:
    """A source of a statement. ``is_pinned``: it has the same rows whenever it is read.

    ``table`` is set for a table of the connector, pinned. ``files`` is set for files that are not
    landed, with ``location`` if Spark has no file system for them; ``listed`` are these files,
    ``footers`` their Parquet or ORC footers. ``landing`` is set for landed files: their rows are
    read later, once, and are then ``landed``. ``changes`` is set for changes of a table. All are
    None for any other source. ``connector`` is that of a table of another catalog. ``is_outside``:
    its rows are evaluated once, before anything reads them, and are then ``landed``.
    """

    frame: DataFrame
    is_pinned: bool
    table: TableHandle | None = None
    files: FileSource | None = None
    location: FileLocation | None = None
    listed: SourceFiles | None = None
    footers: Footers | None = None
    landing: Landing | None = None
    landed: MaterializedSource | None = None
    changes: ChosenChanges | None = None
    connector: Connector | None = None
    is_outside: bool = False


def open_source(
    spark: SparkSession,
    source: Source,
    connector: Connector,
    pinned: PinnedTables,
    limits: TextLimits = DEFAULT_LIMITS,
    chosen: SourceFiles | None = None,
    changes: ChosenChanges | None = None,
    access: SourceAccess | None = None,
    keyed: Keyed | None = None,
) -> OpenSource:
    """Open ``source`` and create a temporary view with its name; ``pinned`` holds each table once.

    ``chosen`` are the files of an incremental source that are read. The view of landed files has no
    rows yet. ``access`` has the secrets of connections.
    ``keyed`` gives the keys of change events as the statement's target stores them.

    Raises:
        CatalogError: SOURCE_NOT_FOUND, TABLE_NOT_FOUND or SOURCE_UNREADABLE, naming the source.
        InternalError: STORAGE_UNAVAILABLE, naming the source.
        RequestError, NotSupportedError: an option or a type of landed files.
        NotSupportedError: a query uses a column of a type that Spark does not have.
    """
    try:
        if isinstance(source, OutsideSource):
            frame = outside_rows(spark, source, limits, access or SourceAccess())
            opened = OpenSource(frame, is_pinned=False, is_outside=True)
        else:
            opened = _open(spark, source, connector, pinned, limits, chosen, changes, keyed)
    except (*_REFUSED, *_OTHER) as error:
        raise _unreadable(source, error) from None
    opened.frame.createOrReplaceTempView(source.name)
    return opened


def listed_source(spark: SparkSession, source: FileSource, connector: Connector) -> SourceFiles:
    """The files of ``source``, of which there may be none; raises as ``open_source``."""
    try:
        return source_files(spark, source, connector)
    except CatalogError as error:
        if error.code is not ErrorCode.SOURCE_NOT_FOUND:
            raise
        return SourceFiles(source, None, ())
    except (*_REFUSED, *_OTHER) as error:
        raise _unreadable(source, error) from None


def _open(
    spark: SparkSession,
    source: FileSource | TableSource | SqlSource | DerivedSource,
    connector: Connector,
    pinned: PinnedTables,
    limits: TextLimits,
    chosen: SourceFiles | None,
    changes: ChosenChanges | None,
    keyed: Keyed | None,
) -> OpenSource:
    if isinstance(source, FileSource):
        return _open_files(spark, source, connector, chosen)
    if changes is not None:
        return _open_changes(spark, connector, changes)
    if isinstance(source, SqlSource):
        frame = spark.sql(source.query)
        indexes = FileIndex.all_of(frame)
        require_read_files(spark, limits, f"query of {source_text(source)}", indexes)
        require_all_indexed(spark, source_text(source), indexes)
        if reads_beside_views(frame):
            leave_all_to_rows(spark)
        if any(table.opaque_columns for table in pinned.tables.values()):
            refuse_opaque_reads(spark, view_columns(frame), f"source {source.name}")
        return OpenSource(frame, is_pinned=False)
    if isinstance(source, DeduplicatedSource):
        return OpenSource(deduplicated(spark, source), is_pinned=False)
    if isinstance(source, CdcSource):
        rows = event_rows(spark, source)
        rows = rows if keyed is None else keyed(source, rows)
        return OpenSource(last_events(source, rows) if source.net else rows, is_pinned=False)
    assert isinstance(source, TableSource)  # noqa: S101 - versions are not opened here
    table = pinned.table(spark, connector.metadata, source)
    files = connector.metadata.plan_files(table)
    frame = connector.scan.read(spark, table, files, table.column_names)
    frame = frame.select(*map(quote, table.column_names))
    frame = padded(frame, char_lengths(declared_types(table)))
    return OpenSource(with_opaque_columns(frame, table), is_pinned=True, table=table)


def _open_changes(spark: SparkSession, connector: Connector, changes: ChosenChanges) -> OpenSource:
    frame, table = changes.frame(spark, connector), changes.table
    frame = padded(frame, char_lengths(declared_types(table)))
    return OpenSource(with_opaque_columns(frame, table), is_pinned=False, changes=changes)


def _open_files(
    spark: SparkSession, source: FileSource, connector: Connector, chosen: SourceFiles | None
) -> OpenSource:
    if is_landed(source):
        landing = landing_of(spark, source, connector, chosen)
        empty = padded(spark.createDataFrame([], landing.schema), declared_lengths(source))
        return OpenSource(empty, False, landing=landing)
    if chosen is not None:
        return _open_chosen(spark, chosen)
    location = None if spark_knows(spark, source.path) else connector.locate(source.path)
    schema = declared_schema(source) if source.schema else None
    if location is not None:
        refuse_unsupported(source)
        listed = located_files(source, location)
        frame = read_source(spark, source, location.filesystem, listed.files, schema)
    else:
        frame = _first_read(spark, source, schema, connector)
        listed = files_of_frame(spark, source, frame, connector)
    footers = footers_of(spark, listed)
    if footers is not None:
        frame = _checked(spark, frame, listed, footers, location)
    frame = padded(decided_by_rows(frame), declared_lengths(source))
    return OpenSource(
        frame, is_pinned=False, files=source, location=location, listed=listed, footers=footers
    )


def _open_chosen(spark: SparkSession, chosen: SourceFiles) -> OpenSource:
    """Parquet or ORC files of an incremental source, which are read one by one."""
    source, filesystem = chosen.source, chosen.filesystem
    _require_one_by_one(chosen)
    assert filesystem is not None  # noqa: S101 - checked with the versions of the files
    schema = declared_schema(source) if source.schema else None
    frame = read_source(spark, source, filesystem, chosen.files, schema)
    footers = footers_of(spark, chosen)
    if footers is not None:
        frame = _checked(spark, frame, chosen, footers, FileLocation(filesystem, source.path))
    frame = padded(decided_by_rows(frame), declared_lengths(source))
    return OpenSource(frame, is_pinned=False, listed=chosen, footers=footers)


def _require_one_by_one(files: SourceFiles) -> None:
    """Refuse what pyarrow does not do as Spark's readers do, of Parquet or ORC files.

    Raises:
        NotSupportedError: names the option, or the column in folder names.
    """
    source, remedy = files.source, "Leave it out, or read all files with file_source."
    for name, value in source.options.items():
        is_default = name.lower() == "mergeschema" and value.lower() == "false"
        if name.lower() not in LISTING and not is_default:
            raise NotSupportedError(
                f"{placed_source(source)}: new files are read one by one, and then the option "
                f"{name} is not supported.",
                remedy,
            )
    for name in files.partition_types:
        raise NotSupportedError(
            f"{placed_source(source)}: new {source.format} files are read one by one, and then "
            f"columns in folder names ({name}) are not supported.",
            "Name one of these folders, or land CSV, JSON, text or Avro files.",
        )


def _checked(
    spark: SparkSession,
    frame: DataFrame,
    listed: SourceFiles,
    footers: Footers,
    location: FileLocation | None,
) -> DataFrame:
    """The rows of Parquet or ORC files that hold the columns of ``frame``, read as they need it.

    Raises:
        CatalogError, NotSupportedError: as ``ColumnChecks.require``.
    """
    source = listed.source
    wanted = type_names(frame.schema)
    nanos = _nanoseconds(footers, wanted, is_declared=source.schema is not None)
    ColumnChecks(listed, {**wanted, **nanos}, is_spark_4(spark)).require(footers)
    schema = as_stored(declared_schema(source), nanos) if source.schema else None
    rebase = footers.calendar_options(source)
    if location is None and (rebase or (nanos and schema)):
        frame = _read_by_spark(spark, source, schema or footer_schema(spark, source), rebase)
    elif location is not None and nanos and schema:
        frame = read_source(spark, source, location.filesystem, listed.files, schema)
    if not nanos:
        return frame
    knows_rows = location is None and "_metadata" not in map(str.lower, frame.columns)
    row = "concat('row ', _metadata.row_index + 1, ' of ', _metadata.file_path)"
    return with_timestamps(frame, nanos, source_text(source), row if knows_rows else None)


def _nanoseconds(
    footers: Footers, wanted: Mapping[str, str], *, is_declared: bool
) -> dict[str, str]:
    """The timestamps in nanoseconds that become timestamps, with their types in the files.

    A column that is declared as BIGINT has the nanoseconds.
    """
    return {
        path: kind
        for path, kind in footers.nanoseconds.items()
        if wanted.get(path) == (kind.removesuffix(NANOSECONDS) if is_declared else "BIGINT")
    }


def _first_read(
    spark: SparkSession, source: FileSource, schema: StructType | None, connector: Connector
) -> DataFrame:
    """The rows of files as Spark reads them.

    Raises:
        CatalogError, NotSupportedError: Spark cannot read the columns; names file and column, if
            footers tell them.
    """
    try:
        return _read_by_spark(spark, source, schema or footer_schema(spark, source), {})
    except (PySparkException, Py4JJavaError):
        if schema is None and source.format.lower() in FOOTER_FORMATS:
            unread = StructType([StructField("column", BooleanType())])
            listed = files_of_frame(
                spark, source, _read_by_spark(spark, source, unread, {}), connector
            )
            footers = footers_of(spark, listed)
            if footers is not None:
                ColumnChecks(listed, footers.footers[0].types, is_spark_4(spark)).explain(footers)
        raise


def _read_by_spark(
    spark: SparkSession, source: FileSource, schema: StructType | None, more: dict[str, str]
) -> DataFrame:
    # By default, Spark's formats with this option keep records that they cannot read.
    reader = spark.read.format(source.format).options(mode="FAILFAST", **more)
    reader = reader.options(**source.options)
    return (reader if schema is None else reader.schema(schema)).load(source.path)


def _is_of_a_name(error: Exception) -> bool:
    """Whether Hadoop failed on the name of a file, as with a colon in a folder with a pattern."""
    origin = getattr(error, "_origin", None)
    cause = None if origin is None else origin.getCause()
    return cause is not None and str(cause.getClass().getName()) == _BAD_NAME


def _unreadable(source: Source, error: Exception) -> Exception:
    code = ErrorCode.SOURCE_UNREADABLE
    if isinstance(error, PySparkException) and (
        isinstance(error, _REFUSED) or _is_of_a_name(error)
    ):
        condition = error_condition(error)
        code = next((_NOT_FOUND[each] for each in _NOT_FOUND if condition.startswith(each)), code)
        problem = str(error).strip().splitlines()[0]
    elif _NO_FORMAT in str(error):
        problem = "Spark has no such format"
    elif isinstance(source, FileSource):
        return InternalError(
            ErrorCode.STORAGE_UNAVAILABLE,
            f"{placed_source(source)}: Spark cannot list it: {shortened(str(error))}",
            "Look whether the store answers. The store of a path without a scheme is fs.defaultFS "
            "of Spark's Hadoop; file:// before the path makes it a local one.",
        )
    else:
        return error
    return CatalogError(
        code,
        f"{placed_source(source)}: {problem}",
        "Check the source's path, format and query.",
    )
