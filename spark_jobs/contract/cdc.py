"""A source of change events: rows that were inserted, updated and deleted elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal, get_args

from spark_jobs.contract.checks import require, require_among, require_identifier
from spark_jobs.contract.event_documents import (
    RowColumn,
    document_schema,
    require_places,
    row_columns,
)
from spark_jobs.contract.table_versions import CHANGE_TYPE

EventFormat = Literal["columns", "debezium", "maxwell", "canal"]
Late = Literal["ignore", "apply"]

# What Debezium writes in place of a value that an UPDATE left as it was.
UNAVAILABLE: Final = "__debezium_unavailable_value"
# Before the name of a column that may be unchanged: where its value is from, by its sequence.
LAST: Final = "_last_"


@dataclass(frozen=True, slots=True)
class SequenceColumn:
    """One column of the order of events: its name in the target, and its place in an event."""

    column: str
    path: str

    def __post_init__(self) -> None:
        require_identifier("column", self.column)
        require(bool(self.path.strip()), "path", "is empty")


@dataclass(frozen=True, slots=True)
class OperationValues:
    """What events call their operations.

    ``before``: the row before an update. ``truncate``: refused. ``ignore``: no change of a row.
    """

    insert: tuple[str, ...] = ()
    update: tuple[str, ...] = ()
    delete: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    truncate: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        named = [*self.changes, *self.truncate, *self.ignore]
        for value in named:
            require(named.count(value) == 1, "values", f"{value!r} occurs more than once")
        require(bool(self.changes), "values", "no value means a change of a row")

    @property
    def changes(self) -> tuple[str, ...]:
        """Those of changes of a row."""
        return (*self.insert, *self.update, *self.delete, *self.before)


@dataclass(frozen=True, slots=True)
class CdcSource:
    """The change events of a source that stands before it in the request.

    ``keys`` are the columns that name a row. ``sequence`` orders the events of a key. ``format``:
    events have a column ``operation`` beside those of the row, or are documents of Debezium,
    Maxwell or Canal, whose rows have the columns ``schema`` (Spark DDL), of which ``encodings``
    tells how they are written. ``values``: what operations are called. ``table``: only events of
    this one. ``late``: an event that is not newer than the target's row is left out, for which the
    target keeps the sequence (``ignore``), or counts (``apply``). ``deleted``: the column of the
    target that marks deleted rows; None: they are removed. ``unchanged``: columns that may hold
    ``unavailable`` in place of a value that stays. ``without``: columns that belong to no row.
    ``net``: the last event of each key; False: each of them.
    """

    name: str
    source: str
    keys: tuple[str, ...]
    values: OperationValues
    sequence: tuple[SequenceColumn, ...] = ()
    format: EventFormat = "columns"
    operation: str = "op"
    late: Late = "ignore"
    deleted: str | None = None
    unchanged: tuple[str, ...] = ()
    unavailable: str = UNAVAILABLE
    schema: str | None = None
    encodings: Mapping[str, str] = field(default_factory=dict)
    table: str | None = None
    without: tuple[str, ...] = ()
    net: bool = True
    kind: ClassVar[str] = "cdc"
    is_incremental: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require(bool(self.keys), "keys", "is empty", "Name the columns of the key.")
        for place in ("keys", "unchanged", "without"):
            for index, column in enumerate(getattr(self, place)):
                require_identifier(f"{place}[{index}]", column)
        require_identifier("operation", self.operation)
        for place, choices in (("format", EventFormat), ("late", Late)):
            value, known = getattr(self, place), get_args(choices)
            require_among(value, known, place)
        require(
            bool(self.sequence) or self.late == "apply",
            "sequence",
            "is empty: nothing tells which event is the last",
            "Name the columns that order the events of a key.",
        )
        if self.deleted is not None:
            require_identifier("deleted", self.deleted)
        require(bool(self.unavailable), "unavailable", "is empty")
        is_document = self.format != "columns"
        for place in ("schema", "encodings", "table"):
            given = getattr(self, place)
            require(
                is_document or not given, place, "is for documents", "Leave it out, or set format."
            )
        require(
            not is_document or bool(self.schema),
            "schema",
            f"is missing: {self.format} documents need the columns of a row",
            "Write it as for files: 'id BIGINT, name STRING'.",
        )
        self._require_distinct()
        if is_document:
            self._require_row_columns()

    def _require_distinct(self) -> None:
        added = [each.column for each in self.sequence]
        added += [] if self.deleted is None else [self.deleted]
        named = [each.lower() for each in (*added, *self.keys, CHANGE_TYPE)]
        for name in named:
            require(named.count(name) == 1, "sequence", f"{name} occurs more than once")
        for place in ("unchanged", "without"):
            lowered = [each.lower() for each in getattr(self, place)]
            for name in lowered:
                require(lowered.count(name) == 1, place, f"{name} occurs more than once")
                require(name not in named, place, f"{name} is always told, so it is not one")

    def _require_row_columns(self) -> None:
        require_places(self.format, self._places)
        names = [each.name.lower() for each in self.columns]
        for place in ("keys", "unchanged"):
            for name in getattr(self, place):
                require(name.lower() in names, place, f"{name} is not a column of schema")
        own = (self.deleted or "").lower()
        remedy = "Name one that the target has beside those of the row."
        require(own not in names, "deleted", f"{own} is a column of schema", remedy)
        for column in self.columns:
            if column.name.lower() in map(str.lower, self.unchanged):
                _require_text(column, self.unavailable)
        for name in (*self.technical, *(each.column for each in self.sequence)):
            require(name.lower() not in names, "schema", f"{name} is a column of its own")

    @property
    def columns(self) -> tuple[RowColumn, ...]:
        """The columns of the rows in documents."""
        return row_columns(self.format, self.schema or "", self.encodings)

    @property
    def document_schema(self) -> str:
        """The columns, in Spark DDL, as which documents are read."""
        return document_schema(self.format, self.columns, self._places)

    @property
    def _places(self) -> list[str]:
        return [each.path for each in self.sequence]

    @property
    def technical(self) -> frozenset[str]:
        """The columns, in lower case, that ``*`` in a statement does not mean."""
        return frozenset(each.lower() for each in (CHANGE_TYPE, *map(last_of, self.unchanged)))


def _require_text(column: RowColumn, unavailable: str) -> None:
    kind = column.type.lower()
    fits = kind.startswith(("string", "char", "varchar", "binary")) or kind == "array<string>"
    problem = f"{column.name} is of the type {column.type}, which cannot hold {unavailable!r}"
    require(fits, "unchanged", problem, "Name columns of STRING, BINARY or ARRAY<STRING>.")


VALUES: Final[Mapping[str, OperationValues]] = {
    "debezium": OperationValues(("c", "r"), ("u",), ("d",), truncate=("t",), ignore=("m",)),
    "maxwell": OperationValues(
        ("insert", "bootstrap-insert"),
        ("update",),
        ("delete",),
        ignore=("bootstrap-start", "bootstrap-complete"),
    ),
    "canal": OperationValues(
        ("INSERT",),
        ("UPDATE",),
        ("DELETE",),
        truncate=("TRUNCATE",),
        ignore=("CREATE", "ALTER", "RENAME", "CINDEX", "DINDEX", "QUERY"),
    ),
}


def last_of(column: str) -> str:
    """The column that tells where the value of a column that may be unchanged is from."""
    return f"{LAST}{column}"
