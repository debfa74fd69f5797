"""The footers of the Parquet and ORC files of a source: their columns, types and row counts.

Imported by executors, which read the footers if there are many files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from pyarrow import orc

from spark_jobs.contract.source_names import source_text
from spark_jobs.engine.source.file_types import NANOSECONDS, Types, orc_types, parquet_types
from spark_jobs.errors import CatalogError, ErrorCode, JobError
from spark_jobs.packing import in_order
from spark_jobs.spi.arrow_tasks import ScanTasks, map_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.contract.request import FileSource
    from spark_jobs.engine.source.source_files import SourceFiles

FOOTER_FORMATS: Final = ("parquet", "orc")
# The footers of more files than this are read by tasks.
_BY_DRIVER: Final = 32
_TASKS: Final = 64
_WRITTEN_BY_SPARK: Final = b"org.apache.spark.version"
# Set by Hive and Impala since they write the same calendar as everybody else.
_PROLEPTIC: Final = b"writer.date.proleptic"
_CALENDARS: Final = ("datetimeRebaseMode", "int96RebaseMode")


@dataclass(frozen=True, slots=True)
class Footer:
    """The footer of one file: its types, by paths as in ``file_types``, and its row count.

    ``repeated`` are the paths that occur more than once, in any case. ``has_old_dates``: it is
    unknown in which calendar its writer counted days before 1582.
    """

    file: str
    types: Mapping[str, str]
    repeated: Sequence[str]
    row_count: int
    has_old_dates: bool = False

    @classmethod
    def of(cls, file: str, types: Types, row_count: int, *, has_old_dates: bool = False) -> Footer:
        """The footer of a file with these types."""
        by_path: dict[str, str] = {}
        repeated = []
        for path, kind in types:
            if path in by_path:
                repeated.append(path)
            by_path[path] = kind
        return cls(file, by_path, repeated, row_count, has_old_dates)

    @property
    def columns(self) -> list[str]:
        """The names of its columns in lower case."""
        return [path for path in self.types if "." not in path]


@dataclass(frozen=True, slots=True)
class Footers:
    """The footers of all files of a source."""

    footers: tuple[Footer, ...]

    @property
    def row_count(self) -> int:
        """Rows of all files."""
        return sum(footer.row_count for footer in self.footers)

    @property
    def nanoseconds(self) -> dict[str, str]:
        """The types of the timestamps that any file has in nanoseconds, by path."""
        return {
            path: kind
            for footer in self.footers
            for path, kind in footer.types.items()
            if kind.endswith(NANOSECONDS)
        }

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


def footers_of(spark: SparkSession, files: SourceFiles) -> Footers | None:
    """The footers of Parquet or ORC files.

    None for other formats, and for files that only Spark can read.

    Raises:
        CatalogError: SOURCE_UNREADABLE, a file is not of the format.
    """
    kind = files.source.format.lower()
    if kind not in FOOTER_FORMATS or files.filesystem is None:
        return None
    paths = tuple(file.path for file in files.files)
    reader = FooterReader(files.filesystem, kind)
    try:
        if len(paths) <= _BY_DRIVER:
            found = [reader.footer(path) for path in paths]
        else:
            tasks = in_order(paths, _TASKS)
            scan = ScanTasks(reader, tasks)
            rows = map_tasks(spark, len(tasks), scan, "footer string").collect()
            found = [Footer(**json.loads(row["footer"])) for row in rows]
    except JobError as error:
        raise CatalogError(
            error.code, f"{source_text(files.source)}: {error.message}", error.remedy
        ) from None
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
        found = [json.dumps(asdict(self.footer(path))) for path in parts]
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
        return Footer.of(path, orc_types(file.schema), file.nrows)


def _parquet(path: str, stream: pa.NativeFile) -> Footer:
    metadata = pq.read_metadata(stream)
    properties = metadata.metadata or {}
    is_old = (
        str(metadata.created_by).startswith("parquet-mr")
        and _WRITTEN_BY_SPARK not in properties
        and properties.get(_PROLEPTIC) != b"true"
    )
    return Footer.of(path, parquet_types(metadata), metadata.num_rows, has_old_dates=is_old)


def folder_columns(path: str) -> set[str]:
    """The columns, in lower case, whose values the folders of ``path`` may name (``day=1``)."""
    return {part.partition("=")[0].lower() for part in path.split("/") if "=" in part}
