"""Sources outside of catalogs and landed files: databases, Spark's data sources, Python functions.

Their rows are evaluated once, before anything reads them, and kept as files of the workspace.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from spark_jobs.contract.checks import require
from spark_jobs.contract.secret_names import holds_secret, is_secret_name

_TABLE: Final = re.compile(r"[^\s;'()]+")
# Characters of a name of a format, or of the class of one.
_FORMAT: Final = re.compile(r"[A-Za-z0-9_.$-]+")
# Of these, other sources know more.
_OF_OTHERS: Final = {"jdbc": "jdbc_source", "csv": "file_source", "json": "file_source"}
# A module, perhaps of a package, and a function of it.
_FUNCTION: Final = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*")
_MOST_CODE: Final = 1_000_000
_OF_OTHERS_TOO: Final = ("text", "avro", "parquet", "orc")
_BY_REFERENCE: Final = (
    "Give it by secret_options: {option: connection}, whose password is the value; or let the "
    "cluster's configuration or role give access."
)


@dataclass(frozen=True, slots=True)
class JdbcSource:
    """The rows of a query on a database, or of a ``table``: exactly one is given, in its own SQL.

    ``connection`` names the connection whose secrets are ``user`` and ``password``; ``url`` is its
    address, without them. ``partition_by``: a column of whole numbers, by whose ranges
    ``partitions`` tasks read at once; None: one task reads all. ``fetch_size``: rows that a task
    gets at once.
    """

    name: str
    connection: str
    query: str | None = None
    table: str | None = None
    url: str | None = None
    partition_by: str | None = None
    partitions: int | None = None
    fetch_size: int = 10_000
    properties: Mapping[str, str] = field(default_factory=dict)
    kind: ClassVar[str] = "jdbc"
    is_incremental: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require(bool(self.connection.strip()), "connection", "is empty")
        require(
            self.query is not None or self.table is not None,
            "query",
            "is missing, and so is table: nothing tells what is read",
            "Give one of them.",
        )
        require(
            self.query is None or self.table is None,
            "query",
            "is given, and so is table",
            "Leave one of them out.",
        )
        require(self.query is None or bool(self.query.strip()), "query", "is empty")
        is_open = self.query is None or not self.query.rstrip().endswith(";")
        require(is_open, "query", "ends with a semicolon", "Leave it out: the query is nested.")
        fits = self.table is None or _TABLE.fullmatch(self.table) is not None
        require(
            fits, "table", f"{self.table!r} is not the name of a table", "Use query for a query."
        )
        together = (self.partition_by is None) == (self.partitions is None)
        require(together, "partitions", "goes with partition_by", "Give both, or leave both out.")
        require(self.partitions is None or self.partitions > 1, "partitions", "must be 2 or more")
        require(self.fetch_size > 0, "fetch_size", "must be positive")
        require(not holds_secret(self.url or ""), "url", "holds a secret")

    @property
    def text(self) -> str:
        """The query, as the database gets it; no semicolon ends it."""
        return f"SELECT * FROM {self.table}" if self.table else (self.query or "").rstrip("; \n\t")


@dataclass(frozen=True, slots=True)
class SparkSource:
    """What ``spark.read.format(format).options(**options).load()`` reads.

    ``schema`` is a Spark DDL string, for data sources that take one. ``secret_options``: option ->
    the connection whose password is its value.
    """

    name: str
    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    schema: str | None = None
    secret_options: Mapping[str, str] = field(default_factory=dict)
    kind: ClassVar[str] = "spark"
    is_incremental: ClassVar[bool] = False

    def __post_init__(self) -> None:
        fits = _FORMAT.fullmatch(self.format) is not None
        require(fits, "format", f"{self.format!r} is not the name of a data source")
        better = _OF_OTHERS.get(self.format.lower())
        if self.format.lower() in _OF_OTHERS_TOO:
            better = "file_source"
        require(
            better is None,
            "format",
            f"{self.format} is read by {better}, which checks more",
            f"Use {better}.",
        )
        for name, value in self.options.items():
            require(
                not (is_secret_name(name) or holds_secret(value)),
                f"options.{name}",
                "holds a secret, which would be seen there",
                _BY_REFERENCE,
            )
        both = {each.lower() for each in self.options} & {e.lower() for e in self.secret_options}
        require(not both, "secret_options", f"{', '.join(sorted(both))} is among options, too")

    @property
    def connections(self) -> tuple[str, ...]:
        """The connections whose passwords it needs."""
        return tuple(self.secret_options.values())


@dataclass(frozen=True, slots=True)
class PythonSource:
    """What a function ``(spark, context) -> DataFrame`` returns.

    ``function``: ``module:function``. ``code`` is the text of the module, which travels with the
    request, so that the same request always runs the same code. ``arguments``: what the function
    finds in ``context.arguments``.
    """

    name: str
    function: str
    code: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    kind: ClassVar[str] = "python"
    is_incremental: ClassVar[bool] = False

    def __post_init__(self) -> None:
        fits = _FUNCTION.fullmatch(self.function) is not None
        require(
            fits,
            "function",
            f"{self.function!r} does not name a function",
            "Write module:function.",
        )
        size = len((self.code or "").encode(errors="replace"))
        require(
            size <= _MOST_CODE,
            "function",
            f"its module has {size:,} bytes, more than {_MOST_CODE:,}",
            "Move the function into a smaller module.",
        )
