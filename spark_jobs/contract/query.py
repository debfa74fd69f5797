"""A query: its statement in a request, and what it found in a result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, get_args

from spark_jobs.contract.checks import require, require_among
from spark_jobs.contract.locations import WAREHOUSE_SCHEMES, require_absolute, scheme_of

OutputFormat = Literal["parquet", "csv"]

# The rows in a result, unless a query says otherwise.
ROWS: Final = 100
# What a result can hold: it becomes an XCom, which lies in Airflow's database.
MOST_ROWS: Final = 10_000
MOST_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class QuerySpec:
    """The rows of ``source``, one of the request's sources: in the result, or in files.

    ``limit`` is the maximum number of rows in the result. With ``output_path``, an absolute path or
    URI of a folder, all rows go to files of the format ``output_format`` in a new folder below it.
    """

    source: str
    limit: int = ROWS
    output_path: str | None = None
    output_format: OutputFormat = "parquet"
    kind: ClassVar[str] = "query"

    def __post_init__(self) -> None:
        require(bool(self.source.strip()), "source", "is empty")
        require(
            1 <= self.limit <= MOST_ROWS,
            "limit",
            f"{self.limit} is not between 1 and {MOST_ROWS:,}",
            "Write more rows to files, with output_path.",
        )
        formats = get_args(OutputFormat)
        require_among(self.output_format, formats, "output_format")
        if self.output_path is not None:
            require_absolute("output_path", self.output_path)
            require(
                scheme_of(self.output_path) in WAREHOUSE_SCHEMES,
                "output_path",
                f"jobs cannot write to {scheme_of(self.output_path)}://",
                f"Write a path, or a URI of: {', '.join(WAREHOUSE_SCHEMES)}.",
            )


@dataclass(frozen=True, slots=True)
class QueryColumn:
    """A column of a query; ``type`` is a Spark SQL type such as ``decimal(10,2)``."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class QueryReport:
    """What a query found.

    ``rows`` are the rows in the order of ``columns``, as JSON values; None if they are in files, in
    the folder ``location``. ``row_count`` is the number of rows in either place. ``truncated``: the
    query has more rows than its limit, which ``rows`` does not have.
    """

    columns: tuple[QueryColumn, ...]
    row_count: int
    rows: tuple[tuple[Any, ...], ...] | None = None
    truncated: bool = False
    location: str | None = None
