"""Which columns the Parquet and ORC files of a source have: each file must have all wanted columns.

Spark fills a column that a file lacks with NULLs. The footers list columns and count rows. Imported
by executors, which read the footers if there are many files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from pyarrow import orc

from spark_jobs.contract.source_names import source_text
from spark_jobs.errors import CatalogError, ErrorCode, JobError
from spark_jobs.spi.arrow_tasks import ScanTasks, map_tasks
from spark_jobs.spi.packing import in_order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.contract.request import FileSource
    from spark_jobs.engine.source.source_files import SourceFiles

_FORMATS: Final = ("parquet", "orc")
# The footers of more files than this are read by tasks.
_BY_DRIVER: Final = 32
_TASKS: Final = 64
_REMEDY: Final = (
    "Correct the files or the source's schema; options={'mergeSchema': True} makes NULLs of what a "
    "file lacks."
)
_WRITTEN_BY_SPARK: Final = b"org.apache.spark.version"
# Set by Hive and Impala since they write the same calendar as everybody else.
_PROLEPTIC: Final = b"writer.date.proleptic"
_CALENDARS: Final = ("datetimeRebaseMode", "int96RebaseMode")


@dataclass(frozen=True, slots=True)
class Footer:
    """The footer of one file: its columns and fields (lower case, dotted) and its row count.

    ``has_old_dates``: it is unknown in which calendar its writer counted days before 1582.
    """

    file: str
    columns: frozenset[str]
    row_count: int
    has_old_dates: bool


@dataclass(frozen=True, slots=True)
class Footers:
    """The footers of all files of a source."""

    footers: tuple[Footer, ...]

    @property
    def row_count(self) -> int:
        """Rows of all files."""
        return sum(footer.row_count for footer in self.footers)

    def calendar_options(self, source: FileSource) -> dict[str, str]:
        """Options that make days before 1582 an error if the calendar is unknown.

        Options that the source sets itself are left out.
        """
        if source.format.lower() != "parquet":
            return {}
        if not any(footer.has_old_dates for footer in self.footers):
            return {}
        own = {name.lower() for name in source.options}
        return {name: "EXCEPTION" for name in _CALENDARS if name.lower() not in own}


def footers_of(spark: SparkSession, files: SourceFiles, frame: DataFrame) -> Footers | None:
    """The footers of Parquet or ORC files, checked against the columns of ``frame``.

    None for other formats, and for files that only Spark can read.

    Raises:
        CatalogError: SOURCE_UNREADABLE, a file lacks a column, has one that others lack, or is not
            of the format.
    """
    kind = files.source.format.lower()
    if kind not in _FORMATS or files.filesystem is None:
        return None
    paths = tuple(file.path for file in files.files)
    names = {file.path: file.name for file in files.files}
    reader = FooterReader(files.filesystem, kind)
    try:
        if len(paths) <= _BY_DRIVER:
            found = [reader.footer(path) for path in paths]
        else:
            tasks = in_order(paths, _TASKS)
            scan = ScanTasks(reader, tasks)
            rows = map_tasks(spark, len(tasks), scan, "footer string").collect()
            found = [_footer(row["footer"]) for row in rows]
    except JobError as error:
        raise CatalogError(
            error.code, f"{source_text(files.source)}: {error.message}", error.remedy
        ) from None
    _require_columns(files, found, _wanted(frame), names)
    return Footers(tuple(found))


@dataclass(frozen=True, slots=True)
class FooterReader:
    """Implements ``PartReader``: the footers of the files at these paths. Picklable."""

    filesystem: pafs.FileSystem
    format: str

    def read(self, parts: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read footers.

        Yields:
            ``footer`` (string): a ``Footer`` as JSON.
        """
        found = [_text(self.footer(path)) for path in parts]
        yield pa.RecordBatch.from_pydict({"footer": found})

    def footer(self, path: str) -> Footer:
        """The footer of one file.

        Raises:
            CatalogError: SOURCE_UNREADABLE.
        """
        try:
            with self.filesystem.open_input_file(path) as stream:
                return self._orc(path, stream) if self.format == "orc" else _parquet(path, stream)
        except (OSError, pa.ArrowException) as error:
            raise CatalogError(
                ErrorCode.SOURCE_UNREADABLE,
                f"{path} cannot be read: {str(error).strip().splitlines()[0]}",
                f"Check that it is a whole {self.format} file.",
            ) from None

    @staticmethod
    def _orc(path: str, stream: pa.NativeFile) -> Footer:
        file = orc.ORCFile(stream)
        return Footer(path, frozenset(_paths(file.schema)), file.nrows, False)


def _parquet(path: str, stream: pa.NativeFile) -> Footer:
    metadata = pq.read_metadata(stream)
    schema = metadata.schema.to_arrow_schema()
    properties = metadata.metadata or {}
    is_old = (
        str(metadata.created_by).startswith("parquet-mr")
        and _WRITTEN_BY_SPARK not in properties
        and properties.get(_PROLEPTIC) != b"true"
    )
    return Footer(path, frozenset(_paths(schema)), metadata.num_rows, is_old)


def _paths(fields: Iterable[pa.Field], above: str = "") -> Iterator[str]:
    for field in fields:
        path = f"{above}{field.name.lower()}"
        yield path
        yield from _paths(_inner(field.type), f"{path}.")


def _inner(kind: pa.DataType) -> Sequence[pa.Field]:
    """The fields of structs, also inside lists and maps, which themselves have no field names."""
    while pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    if pa.types.is_map(kind):
        return [*_inner(kind.key_type), *_inner(kind.item_type)]
    return [kind.field(i) for i in range(kind.num_fields)] if pa.types.is_struct(kind) else []


def _wanted(frame: DataFrame) -> list[str]:
    from spark_jobs.arrow_types import arrow_type

    known = []
    for field in frame.schema:
        try:
            known.append(pa.field(field.name, arrow_type(field.dataType)))
        except Exception:  # noqa: BLE001 - types that Arrow lacks have no fields
            known.append(pa.field(field.name, pa.null()))
    return [*_paths(known)]


def _require_columns(
    files: SourceFiles, found: Sequence[Footer], wanted: Sequence[str], names: dict[str, str]
) -> None:
    options = {name.lower(): each.lower() for name, each in files.source.options.items()}
    merges = options.get("mergeschema") == "true"
    columns = [footer.columns for footer in found]
    if merges:
        columns = [frozenset().union(*columns)]
    for footer, has in zip(found, columns, strict=False):
        in_folders = folder_columns(footer.file)
        missing = [each for each in wanted if each not in has and each not in in_folders]
        if missing and not _is_positional(files.source.format, has):
            raise CatalogError(
                ErrorCode.SOURCE_UNREADABLE,
                f"{source_text(files.source)}: {names[footer.file]} has no column {missing[0]}; it "
                f"has {', '.join(sorted(each for each in has if '.' not in each))}.",
                _REMEDY,
            )
        unknown = sorted(each for each in has.difference(wanted) if "." not in each)
        if unknown and files.source.schema is None:
            raise CatalogError(
                ErrorCode.SOURCE_UNREADABLE,
                f"{source_text(files.source)}: {names[footer.file]} has a column {unknown[0]}, "
                "which other files of the source lack.",
                _REMEDY,
            )


def folder_columns(path: str) -> set[str]:
    """The columns, in lower case, whose values the folders of ``path`` may name (``day=1``)."""
    return {part.partition("=")[0].lower() for part in path.split("/") if "=" in part}


def _is_positional(kind: str, columns: frozenset[str]) -> bool:
    """Whether columns go by position, because old Hive wrote ORC files without column names."""
    return kind.lower() == "orc" and all(name.startswith("_col") for name in columns)


def _text(footer: Footer) -> str:
    return json.dumps([footer.file, sorted(footer.columns), footer.row_count, footer.has_old_dates])


def _footer(text: str) -> Footer:
    file, columns, row_count, has_old_dates = json.loads(text)
    return Footer(file, frozenset(columns), row_count, has_old_dates)
