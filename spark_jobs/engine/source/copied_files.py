"""Parquet files as the source of a copy: pyarrow reads the rows that Spark would. Driver only.

Only if both are sure to read the same: plain columns of Spark's types, and no dates that Spark
would move to another calendar. Any other file, even a damaged one, is left to Spark and its errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, pairwise, repeat
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DateType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from spark_jobs.arrow_types import arrow_type
from spark_jobs.engine.source.arrow_reader import ArrowFileReader, FileSplit, row_group_starts
from spark_jobs.engine.source.arrow_source import SPLIT_BYTES, listed
from spark_jobs.engine.source.file_columns import folder_columns
from spark_jobs.landing.files import FileVersion
from spark_jobs.packing import scan_tasks
from spark_jobs.spi.arrow_rows import ArrowRows
from spark_jobs.spi.arrow_tasks import ScanTasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.contract.request import FileSource
    from spark_jobs.spi.storage import FileLocation

# The driver reads every footer.
_MOST_FILES: Final = 1_000
_FOOTERS_AT_ONCE: Final = 16
# About what the headers of a chunk's pages take.
_HEADER_BYTES: Final = 64
_DATED: Final = (DateType, TimestampType, TimestampNTZType)
_PLAIN: Final = (BooleanType, NumericType, StringType, BinaryType, *_DATED)
_REBASE_MODE: Final = "spark.sql.parquet.datetimeRebaseModeInRead"
# What Spark's own writer says about itself (Spark's ParquetUtils and DataSourceUtils).
_SPARK_VERSION: Final = b"org.apache.spark.version"
_FIRST_CORRECT: Final = 3
_OLD_CALENDAR: Final = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")


@dataclass(frozen=True, slots=True)
class CopiedFiles:
    """Files that all have the columns of ``schema``; reading another version is an error.

    ``row_groups`` are, for each file, the bytes at which its row groups begin, and the last ends;
    ``decompressed_bytes`` is about the size of the values of ``schema``.
    """

    filesystem: pafs.FileSystem
    files: tuple[pafs.FileInfo, ...]
    row_groups: tuple[tuple[int, ...], ...]
    schema: pa.Schema
    row_count: int
    decompressed_bytes: int

    @property
    def byte_size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    def rows(self, columns: Sequence[int], tasks: int) -> ArrowRows:
        """The columns at these positions, read by at most ``tasks`` tasks."""
        size = min(SPLIT_BYTES, max(1, self.byte_size // tasks))
        by_file = map(_splits, self.files, self.row_groups, repeat(size))
        splits = [*chain(*by_file)]
        sizes = {ordinal: split.size for ordinal, split in enumerate(splits)}
        ordinals = scan_tasks(sizes, tasks)
        schema = pa.schema([self.schema.field(index) for index in columns])
        of_tasks = tuple(tuple(splits[ordinal] for ordinal in each) for each in ordinals)
        reader = ArrowFileReader(self.filesystem, False, schema)
        return ArrowRows(ScanTasks(reader, of_tasks), tuple(map(tuple, ordinals)))


def copied_files(
    spark: SparkSession, source: FileSource, frame: DataFrame, location: FileLocation | None
) -> CopiedFiles | None:
    """The files of a source, whose rows are those of ``frame``; None if Spark has to read them.

    ``location`` is where they are, if Spark has no file system for them.
    """
    if source.format.lower() != "parquet" or source.options:
        return None
    schema = _plain_schema(frame.schema)
    names = frozenset(frame.columns)
    located = _found(source, frame, location)
    if schema is None or located is None or not 0 < len(located[1]) <= _MOST_FILES:
        return None
    filesystem, files = located
    # Spark takes such columns from the names of folders, even if the files have them too.
    in_folders = set().union(*(folder_columns(file.path) for file in files))
    if in_folders.intersection(name.lower() for name in frame.columns):
        return None
    by_default = spark.conf.get(_REBASE_MODE) == "CORRECTED"
    dated = any(isinstance(field.dataType, _DATED) for field in frame.schema)

    def copied_rows(file: pafs.FileInfo) -> tuple[int, int, tuple[int, ...]] | None:
        try:
            with filesystem.open_input_file(file.path) as stream:
                footer = pq.read_metadata(stream)
                same = _has(footer.schema.to_arrow_schema(), schema)
        except (OSError, pa.ArrowException):
            return None
        is_copied = same and (not dated or _is_of_one_calendar(footer.metadata or {}, by_default))
        end = file.size - footer.serialized_size
        if not is_copied:
            return None
        starts = (*row_group_starts(footer), end)
        return footer.num_rows, _decompressed_bytes(footer, names), starts

    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
        found_rows = list(pool.map(copied_rows, files))
    copied = [each for each in found_rows if each is not None]
    if len(copied) < len(files):
        return None
    counts, sizes, row_groups = zip(*copied, strict=True)
    return CopiedFiles(filesystem, files, row_groups, schema, sum(counts), sum(sizes))


def _decompressed_bytes(footer: pq.FileMetaData, names: Set[str]) -> int:
    """About the bytes of the values of plain columns, without compression."""
    groups = map(footer.row_group, range(footer.num_row_groups))
    chunks = (group.column(index) for group in groups for index in range(group.num_columns))
    sizes = (each.total_uncompressed_size for each in chunks if each.path_in_schema in names)
    return sum(max(0, size - _HEADER_BYTES) for size in sizes)


def _splits(file: pafs.FileInfo, row_groups: Sequence[int], size: int) -> Iterator[FileSplit]:
    """Neighbouring row groups of about ``size`` bytes each."""
    middles = {start: (start + end) // 2 for start, end in pairwise(sorted(row_groups))}
    begins = {middle // size: start for start, middle in reversed(middles.items())}
    starts = sorted(begins.values())[1:]
    for begin, end in pairwise([0, *starts, file.size]):
        yield FileSplit(file.path, begin, end, FileVersion.of(file))


def _plain_schema(schema: StructType) -> pa.Schema | None:
    if not all(isinstance(field.dataType, _PLAIN) for field in schema):
        return None
    return pa.schema([pa.field(field.name, arrow_type(field.dataType)) for field in schema])


def _found(
    source: FileSource, frame: DataFrame, location: FileLocation | None
) -> tuple[pafs.FileSystem, tuple[pafs.FileInfo, ...]] | None:
    """The source's files, as this process sees them; None if it does not."""
    if location is not None:
        return location.filesystem, tuple(listed(source, location))
    uris = [urlsplit(uri) for uri in frame.inputFiles()]
    if any(uri.scheme != "file" for uri in uris):
        return None
    local = pafs.LocalFileSystem()
    files = local.get_file_info([unquote(uri.path) for uri in uris])
    if any(file.type != pafs.FileType.File for file in files):
        return None
    return local, tuple(files)


def _has(found: pa.Schema, wanted: pa.Schema) -> bool:
    """Whether a file has the columns with these exact types, and no names that Spark equates."""
    if len({name.lower() for name in found.names}) < len(found.names):
        return False
    return all(
        field.name in found.names and _stored(found.field(field.name).type) == field.type
        for field in wanted
    )


def _stored(kind: pa.DataType) -> pa.DataType:
    """The stored type of a column whose type in its writer's memory was ``kind``."""
    if pa.types.is_dictionary(kind):
        return _stored(kind.value_type)
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    return kind


def _is_of_one_calendar(properties: Mapping[bytes, bytes], by_default: bool) -> bool:
    """Whether Spark takes dates as they are (Spark's ``DataSourceUtils.datetimeRebaseSpec``)."""
    version = properties.get(_SPARK_VERSION)
    if version is None:
        return by_default
    is_correct = int(version.split(b".")[0]) >= _FIRST_CORRECT
    return is_correct and not any(each in properties for each in _OLD_CALENDAR)
