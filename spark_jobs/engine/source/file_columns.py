"""The footers of the Parquet and ORC files of a source: their columns, types and row counts.

Types are in the words of Spark SQL. Columns and the parts of nested ones are known by paths in
lower case, as Parquet and Iceberg write them: ``address.city``, ``items.element.price``,
``prices.key``, ``prices.value``. Imported by executors, which read the footers if there are many
files.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from pyarrow import orc

from spark_jobs.contract.source_names import source_text
from spark_jobs.errors import CatalogError, ErrorCode, JobError
from spark_jobs.landing.type_names import NAMES
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
# What Spark SQL has no words for.
NANOSECONDS: Final = " in nanoseconds"
INSTANT_OF_ORC: Final = "TIMESTAMP WITH LOCAL TIME ZONE"
FIXED_BINARY: Final = "BINARY of fixed length"
UNKNOWN: Final = "another type"
_PHYSICAL: Final = {
    "BOOLEAN": "BOOLEAN",
    "INT32": "INT",
    "INT64": "BIGINT",
    "INT96": "TIMESTAMP",
    "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE",
    "BYTE_ARRAY": "BINARY",
    "FIXED_LEN_BYTE_ARRAY": FIXED_BINARY,
}
_LOGICAL: Final = {
    "String": "STRING",
    "Enum": "STRING",
    "JSON": "STRING",
    "BSON": "BINARY",
    "Date": "DATE",
    "Null": "VOID",
}
_WHOLE: Final = {8: "TINYINT", 16: "SMALLINT", 32: "INT", 64: "BIGINT"}
# What Spark notes of columns that ORC files store as another type.
_TYPE_OF_SPARK: Final = b"spark.sql.catalyst.type"
_NOT_ALIKE: Final = {"timestamp_ntz": "TIMESTAMP_NTZ"}
# The path and the type of each column, and of each of its parts.
Types = Iterator[tuple[str, str]]


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
        return Footer.of(path, _orc_types(file.schema), file.nrows)


def _parquet(path: str, stream: pa.NativeFile) -> Footer:
    metadata = pq.read_metadata(stream)
    properties = metadata.metadata or {}
    is_old = (
        str(metadata.created_by).startswith("parquet-mr")
        and _WRITTEN_BY_SPARK not in properties
        and properties.get(_PROLEPTIC) != b"true"
    )
    return Footer.of(path, _parquet_types(metadata), metadata.num_rows, has_old_dates=is_old)


def folder_columns(path: str) -> set[str]:
    """The columns, in lower case, whose values the folders of ``path`` may name (``day=1``)."""
    return {part.partition("=")[0].lower() for part in path.split("/") if "=" in part}


def _parquet_types(metadata: pq.FileMetaData) -> Types:
    """The types of a Parquet file; of a file whose nesting is not plain, ``UNKNOWN`` ones."""
    schema = metadata.schema
    columns = map(schema.column, range(metadata.num_columns))
    kinds = [_parquet_type(each.physical_type, each.logical_type.to_json()) for each in columns]
    leaves = iter(kinds)
    types = list(_types(schema.to_arrow_schema(), lambda _: next(leaves, "")))
    is_plain = next(leaves, None) is None and all(kind for _, kind in types)
    return ((path, kind if is_plain else UNKNOWN) for path, kind in types)


def _orc_types(schema: pa.Schema) -> Types:
    """The types of an ORC file."""
    return _types(schema, _orc_type)


def _types(fields: Iterable[pa.Field], leaf: Callable[[pa.Field], str], above: str = "") -> Types:
    for field in fields:
        yield from _type(f"{above}{field.name.lower()}", field, leaf)


def _type(path: str, field: pa.Field, leaf: Callable[[pa.Field], str]) -> Types:
    kind = field.type
    if pa.types.is_map(kind):
        yield path, "MAP"
        yield from _type(f"{path}.key", kind.key_field, leaf)
        yield from _type(f"{path}.value", kind.item_field, leaf)
    elif pa.types.is_struct(kind):
        yield path, "STRUCT"
        yield from _types([kind.field(i) for i in range(kind.num_fields)], leaf, f"{path}.")
    elif pa.types.is_nested(kind) and kind.num_fields == 1:
        yield path, "ARRAY"
        yield from _type(f"{path}.element", kind.value_field, leaf)
    else:
        yield path, leaf(field)


@functools.cache
def _parquet_type(physical: str, logical_type: str) -> str:
    logical = json.loads(logical_type)
    kind = logical["Type"]
    if kind == "None":
        return _PHYSICAL.get(physical, UNKNOWN)
    if kind == "Int":
        return f"{'' if logical['isSigned'] else 'UNSIGNED '}{_WHOLE[logical['bitWidth']]}"
    if kind == "Decimal":
        return f"DECIMAL({logical['precision']},{logical['scale']})"
    if kind == "Timestamp":
        name = "TIMESTAMP" if logical["isAdjustedToUTC"] else "TIMESTAMP_NTZ"
        return name + (NANOSECONDS if logical["timeUnit"] == "nanoseconds" else "")
    return _LOGICAL.get(kind, UNKNOWN)


def _orc_type(field: pa.Field) -> str:
    kind, of_spark = field.type, (field.metadata or {}).get(_TYPE_OF_SPARK, b"").decode()
    if of_spark in _NOT_ALIKE:
        return _NOT_ALIKE[of_spark]
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return INSTANT_OF_ORC if kind.tz else "TIMESTAMP"
    return NAMES.get(kind, UNKNOWN)
