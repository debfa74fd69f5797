"""What a statement reads: files, a table of the catalog, or a query over both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import ClassVar, Final, Literal

from spark_jobs.contract.bad_rows import (
    OnBadRows,
    check_max_bad_rows,
    check_on_bad_rows,
    check_quarantine,
)
from spark_jobs.contract.catalogs import CatalogSpec
from spark_jobs.contract.cdc import CdcSource
from spark_jobs.contract.checks import require
from spark_jobs.contract.deduplication import DeduplicatedSource
from spark_jobs.contract.new_files import NewFiles
from spark_jobs.contract.outside_sources import JdbcSource, PythonSource, SparkSource
from spark_jobs.contract.scd2 import Scd2Source
from spark_jobs.contract.spark_types import require_known_types
from spark_jobs.contract.table_name import TableName
from spark_jobs.contract.table_versions import ChangeRange, TableVersion

# Spark may have others, by their name or their class: Delta, XML and the like.
_FORMATS: Final = ("csv", "json", "text", "avro", "parquet", "orc")
_ALIKE: Final = 0.75
# What is evaluated once, before anything reads it, and kept as files.
OutsideSource = JdbcSource | SparkSource | PythonSource
# Sources that read the source whose name they have, which stands before them.
DerivedSource = DeduplicatedSource | CdcSource | Scd2Source


def require_format(name: str) -> None:
    """Refuse a name that is almost one of the usual formats.

    Raises:
        RequestError: REQUEST_INVALID.
    """
    lower = name.lower()
    meant = get_close_matches(lower, _FORMATS, 1, _ALIKE)
    meant += [each for each in _FORMATS if sorted(each) == sorted(lower)]
    problem = f"Spark has no format {name!r}"
    remedy = f"Did you mean {''.join(meant[:1])}? Formats of files: {', '.join(_FORMATS)}."
    require(lower in _FORMATS or not meant, "format", problem, remedy)


@dataclass(frozen=True, slots=True)
class FileSource:
    """Files as a source: CSV, JSON, text, Avro, Parquet, ORC, or another format of Spark's.

    ``schema`` is a Spark DDL string (``id BIGINT, name STRING``), for files without a schema.
    ``on_bad_rows``: with ``fail`` or None, a record that cannot be read fails the statement; with
    ``quarantine``, it is written to a file below the folder ``quarantine`` (absolute path or URI),
    and the other records are read. ``max_bad_rows`` is how many may be set aside: from 1, a number
    of records; below 1, a share of the records read; None: any number. ``new_files``: only those
    files are read that no commit of the task has applied; None: all. ``missing``: columns of JSON
    that no record has are an error (None), or NULL, if any has one of them (``null``).
    """

    name: str
    path: str
    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    schema: str | None = None
    on_bad_rows: OnBadRows | None = None
    quarantine: str | None = None
    max_bad_rows: float | None = None
    new_files: NewFiles | None = None
    missing: Literal["null"] | None = None
    kind: ClassVar[str] = "file"

    def __post_init__(self) -> None:
        require_format(self.format)
        require_known_types(self.schema or "")
        check_on_bad_rows(self.on_bad_rows, self.format, self.options)
        check_quarantine(self.on_bad_rows, self.quarantine, self.path)
        check_max_bad_rows(self.on_bad_rows, self.max_bad_rows)
        if self.new_files is not None:
            self.new_files.require_format(self.format)

    @property
    def is_incremental(self) -> bool:
        """Whether what is read of it depends on a mark of the target."""
        return self.new_files is not None


@dataclass(frozen=True, slots=True)
class TableSource:
    """A table, ``at`` a former state, or else as it is when the job starts.

    ``changes``: not its rows, but those that changed in a range of its history; None: its rows.
    ``connection`` names the connection to another catalog, and ``catalog`` is that one; None: it is
    a table of the same catalog.
    """

    name: str
    table: TableName
    at: TableVersion | None = None
    changes: ChangeRange | None = None
    connection: str | None = None
    catalog: CatalogSpec | None = None
    kind: ClassVar[str] = "table"

    def __post_init__(self) -> None:
        require(self.at is None or self.changes is None, "at", "changes are between two states", "")
        is_named = self.catalog is None or self.connection is not None
        require(is_named, "catalog", "has no connection")
        require(self.connection is None or bool(self.connection.strip()), "connection", "is empty")

    @property
    def is_incremental(self) -> bool:
        """Whether what is read of it depends on a mark of the target."""
        return self.changes is not None and self.changes.start is not None

    @property
    def placed_table(self) -> str:
        """The table's name, behind that of its connection if it is in another catalog."""
        return f"{self.connection}:{self.table}" if self.connection else str(self.table)


@dataclass(frozen=True, slots=True)
class SqlSource:
    """A Spark SQL query over the sources that stand before it in the request."""

    name: str
    query: str
    kind: ClassVar[str] = "sql"
    is_incremental: ClassVar[bool] = False


Source = (
    FileSource
    | TableSource
    | SqlSource
    | DeduplicatedSource
    | CdcSource
    | Scd2Source
    | JdbcSource
    | SparkSource
    | PythonSource
)


def connections_of(sources: Iterable[Source]) -> list[str]:
    """The connections that sources name, each once."""
    connections: list[str] = []
    for source in sources:
        if isinstance(source, SparkSource):
            connections += source.connections
        elif isinstance(source, TableSource | JdbcSource) and source.connection:
            connections.append(source.connection)
    return list(dict.fromkeys(connections))
