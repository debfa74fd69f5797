"""Sources of landed files: read once and strictly into the job's own Parquet files. Driver only.

Text that does not parse is an error here, and so are broken records, missing columns and bytes of
another encoding. Spark's readers turn most of these into NULLs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.types import StructType

from spark_jobs.contract.result import SourceMetrics
from spark_jobs.contract.source_names import placed_source, source_text
from spark_jobs.engine.runtime.lease import Lease, LeasedTask
from spark_jobs.engine.source.landing_schema import columns_of, source_schema
from spark_jobs.engine.source.landing_task import REPORT_SCHEMA, LandingReport, LandingTask
from spark_jobs.engine.source.quarantine import Quarantine
from spark_jobs.engine.source.source_files import SourceFiles, source_files
from spark_jobs.errors import CatalogError, DataError, ErrorCode, NotSupportedError
from spark_jobs.landing.avro_reader import AvroReader
from spark_jobs.landing.csv_header import blanks_remedy
from spark_jobs.landing.files import FilePart
from spark_jobs.landing.options import FORMATS, Reader, SourceOptions
from spark_jobs.landing.records import Column
from spark_jobs.landing.streams import codec_of
from spark_jobs.landing.values import TextRules
from spark_jobs.packing import scan_tasks
from spark_jobs.spi.arrow_tasks import ScanTasks, map_tasks
from spark_jobs.storage.files import make_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.contract.request import FileSource
    from spark_jobs.spi.connector import Connector
    from spark_jobs.spi.storage import WarehouseStorage

_PART_BYTES: Final = 64 * 1024 * 1024
# The cost of opening a file, as the number of bytes that could be read in the same time.
_OPEN_BYTES: Final = 64 * 1024
_NAMED: Final = 20


@dataclass(frozen=True, slots=True)
class Landing:
    """A source of landed files that has not been read: its files, columns and reader.

    ``partition`` are the columns whose values are in folder names.
    """

    files: SourceFiles
    schema: StructType
    reader: Reader
    partition: tuple[Column, ...]
    rules: TextRules

    @property
    def source(self) -> FileSource:
        """The source in the request."""
        return self.files.source


@dataclass(frozen=True, slots=True)
class LandedFiles:
    """A landed source; ``files`` maps the paths of Parquet files to their sizes in bytes as Arrow.

    ``column_bytes`` are the sizes of the constant and of each column; empty without rows.
    """

    files: dict[str, int]
    row_count: int
    byte_size: int
    column_bytes: tuple[int, ...]
    metrics: SourceMetrics
    notes: tuple[str, ...]


def is_landed(source: FileSource) -> bool:
    """Whether a source's format is read here instead of by Spark."""
    return source.format.lower() in FORMATS


def landing_of(
    spark: SparkSession,
    source: FileSource,
    connector: Connector,
    chosen: SourceFiles | None = None,
) -> Landing:
    """List the files of ``source`` and find its columns. If possible, reads no more than a header.

    ``chosen``: these are its files.

    Raises:
        RequestError: REQUEST_INVALID, an option is wrong.
        CatalogError: SOURCE_NOT_FOUND, SOURCE_UNREADABLE.
        NotSupportedError: an option, a type or a kind of storage that is not supported.
    """
    files = chosen or source_files(spark, source, connector)
    if files.filesystem is None:
        raise NotSupportedError(
            f"{placed_source(source)} cannot be read: Python has no file system for it.",
            "Land them on a local or shared folder, on s3:// or on hdfs://, or write parquet.",
        )
    zone: str = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    schema = source_schema(spark, files)
    columns = columns_of(source, schema)
    in_folders = {name.lower() for name in files.partition_types}
    partition = tuple(each for each in columns if each.name.lower() in in_folders)
    in_files = [each for each in columns if each not in partition]
    reader = SourceOptions(source_text(source), source.format.lower(), source.options).reader(
        in_files, zone
    )
    if isinstance(reader, AvroReader) and source.schema is None:
        reader = replace(reader, others=tuple(in_folders))
    return Landing(files, schema, reader, partition, TextRules(zone))


def land(
    spark: SparkSession,
    landing: Landing,
    storage: WarehouseStorage,
    folder: str,
    operation_id: str,
    quarantine: Quarantine | None,
) -> LandedFiles:
    """Read all files of a source into Parquet files in ``folder`` (relative to the workspace).

    ``folder`` is inside the scratch folder of a run that holds its lease. The rows have a constant
    ``row`` and the columns as ``c0``, ``c1`` …

    Raises:
        CatalogError: SOURCE_UNREADABLE, a record or a file cannot be read, or a file changed.
        DataError: VALUE_NOT_STORABLE; TOO_MANY_BAD_ROWS.
    """
    source, files = landing.source, landing.files
    assert files.filesystem is not None  # noqa: S101 - `landing_of` refuses None
    columns = columns_of(source, landing.schema)
    fields = [pa.field("row", pa.bool_())]
    fields += [pa.field(f"c{i}", column.kind) for i, column in enumerate(columns)]
    root = f"{storage.root}/{folder}"
    make_folder(storage.filesystem, root)
    tasks = _scan_tasks(landing, spark.sparkContext.defaultParallelism)
    task = LandingTask(
        source=source_text(source),
        filesystem=files.filesystem,
        reader=landing.reader,
        columns=tuple(column.name for column in columns),
        schema=pa.schema(fields),
        partition=landing.partition,
        rules=landing.rules,
        storage=storage.filesystem,
        folder=root,
        operation_id=operation_id,
        keeps_bad=source.on_bad_rows == "quarantine",
    )
    lease = Lease(storage.filesystem, root.rpartition("/")[0])
    leased = LeasedTask(ScanTasks(task, tasks), lease, root)
    rows = map_tasks(spark, len(tasks), leased, REPORT_SCHEMA).collect()
    reports = [LandingReport.from_json(row["report"]) for row in rows]
    files.require_unchanged()
    _require_seen(landing, reports)
    metrics = SourceMetrics(
        files=len(files.files),
        bytes=files.byte_size,
        records=sum(report.records for report in reports),
        lost_values=sum(report.lost_values for report in reports),
        lost_records=sum(report.lost_records for report in reports),
        quarantined=sum(report.bad_records for report in reports),
    )
    if quarantine is not None:
        kept = [f"{root}/{report.bad_file}" for report in reports if report.bad_file]
        metrics = quarantine.filled(storage.filesystem, kept, metrics)
        _require_few(source, metrics)
    full = [report for report in reports if report.file]
    return LandedFiles(
        files={f"{root}/{each.file}": each.row_bytes for each in full},
        row_count=sum(report.rows for report in reports),
        byte_size=sum(report.row_bytes for report in reports),
        column_bytes=tuple(map(sum, zip(*(each.column_bytes for each in full), strict=True))),
        metrics=metrics,
        notes=_notes(landing, reports, metrics),
    )


def _scan_tasks(landing: Landing, cores: int) -> tuple[tuple[FilePart, ...], ...]:
    """The parts of all files, grouped by task."""
    parts = [part for file in landing.files.files for part in _parts(landing, FilePart(file))]
    sizes = {
        ordinal: (part.end or part.file.version.size) - part.start + _OPEN_BYTES
        for ordinal, part in enumerate(parts)
    }
    tasks = max(cores, sum(sizes.values()) // _PART_BYTES)
    return tuple(tuple(map(parts.__getitem__, each)) for each in scan_tasks(sizes, tasks))


def _parts(landing: Landing, whole: FilePart) -> Sequence[FilePart]:
    size = whole.file.version.size
    if size <= _PART_BYTES or not landing.reader.is_splittable or codec_of(whole.file.path):
        return [whole]
    return [
        FilePart(whole.file, start, min(start + _PART_BYTES, size))
        for start in range(0, size, _PART_BYTES)
    ]


def _require_seen(landing: Landing, reports: Sequence[LandingReport]) -> None:
    """Check that each wanted column occurs in some record, if records name their columns.

    Without a schema, the columns are those of the first CSV file, and other files have no others.
    """
    occurring = {name.lower() for report in reports for name in report.seen}
    if not occurring:
        return
    source, files = landing.source, landing.files
    if source.missing == "null" and occurring.intersection(map(str.lower, landing.schema.names)):
        return
    more = occurring.difference(name.lower() for name in landing.schema.names)
    more = more.difference(name.lower() for name in files.partition_types)
    if more and source.schema is None and source.format.lower() == "csv":
        raise CatalogError(
            ErrorCode.SOURCE_UNREADABLE,
            f"{placed_source(source)}: files have a column {min(more)}, which the first one lacks.",
            "Give the source a schema: it says which columns are read.",
        )
    in_folders = {column.name for column in landing.partition}
    corrupt = getattr(getattr(landing.reader, "wanted", None), "corrupt", None)
    for name in landing.schema.names:
        if name.lower() not in occurring and name not in in_folders and name != corrupt:
            raise CatalogError(
                ErrorCode.SOURCE_UNREADABLE,
                f"{placed_source(landing.source)}: the column {name} occurs in no record; "
                f"they have {', '.join(sorted(occurring)[:_NAMED])}.",
                f"Correct the source's schema.{blanks_remedy(sorted(occurring))}",
            )


def _require_few(source: FileSource, metrics: SourceMetrics) -> None:
    limit = source.max_bad_rows
    if limit is None or not metrics.quarantined:
        return
    allowed = limit if limit >= 1 else limit * (metrics.records or 0)
    if metrics.quarantined > allowed:
        of_all = f"{limit:.0f}" if limit >= 1 else f"{limit:.2%} of them"
        raise DataError(
            ErrorCode.TOO_MANY_BAD_ROWS,
            f"{source_text(source)}: {metrics.quarantined} of {metrics.records} records cannot be "
            f"read; max_bad_rows allows {of_all}.",
            f"Look at {metrics.quarantine or 'them'}, correct the files, or allow more.",
        )


def _notes(
    landing: Landing, reports: Sequence[LandingReport], metrics: SourceMetrics
) -> tuple[str, ...]:
    """What users should know about a source, for the log."""
    name = source_text(landing.source)
    notes = [f"{name}: {metrics.records} records in {metrics.files} files"]
    wanted = {each.lower() for each in landing.schema.names}
    seen = {each for report in reports for each in report.seen}
    ignored = sorted(each for each in seen if each.lower() not in wanted)
    if ignored:
        more = f" and {len(ignored) - _NAMED} more" if len(ignored) > _NAMED else ""
        notes.append(f"{name}: ignored columns: {', '.join(ignored[:_NAMED])}{more}")
    if metrics.lost_values or metrics.lost_records:
        notes.append(
            f"{name}: its options made {metrics.lost_values} values NULL and lost "
            f"{metrics.lost_records} records"
        )
    if metrics.quarantined:
        where = metrics.quarantine or "a real run would set them aside"
        notes.append(f"{name}: {metrics.quarantined} bad records: {where}")
    return tuple(notes)
