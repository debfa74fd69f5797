"""Change events that are documents of Debezium, Maxwell or Canal, as rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import ArrayType, StructType

from spark_jobs.contract.cdc import CdcSource
from spark_jobs.contract.event_documents import PAYLOAD, POSITION
from spark_jobs.contract.source_names import source_text
from spark_jobs.contract.sql_text import RESERVED_PREFIX, quote
from spark_jobs.engine.events.encodings import decoded
from spark_jobs.engine.runtime.sql_text import named, text_literal
from spark_jobs.errors import NotSupportedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


# The operation of an event, as text, until it is told by _change_type.
OPERATION: Final = f"{RESERVED_PREFIX}operation"
# The operation of a row that is left by an update of its key; no document says so.
BEFORE_MOVE: Final = f"{RESERVED_PREFIX}moved"
# A row that came by one, where no row of its key was.
AFTER_MOVE: Final = f"{RESERVED_PREFIX}came"


_NEW, _OLD, _IMAGE, _PLACE = (
    f"{RESERVED_PREFIX}{name}_image" for name in ("new", "old", "row", "place")
)
# Maxwell leaves xoffset out of the last row of a transaction.
_LAST_OFFSET: Final = "IF(`commit`, 9223372036854775807, NULL)"


def document_rows(source: CdcSource, rows: DataFrame) -> DataFrame:
    """The rows of documents, with the operation of each; without what no row is told by.

    A row whose key changed is two: what it was by its old key, and what it is.

    Raises:
        NotSupportedError: the documents are texts, or lack a part.
    """
    return _Documents(source, rows).rows()


@dataclass(frozen=True)
class Places:
    """Where documents have what is told by none of their rows, as SQL."""

    source: CdcSource
    columns: frozenset[str]

    @staticmethod
    def of(source: CdcSource, events: DataFrame) -> Places:
        """Those in the documents that are rows of ``events``."""
        return Places(source, frozenset(each.lower() for each in events.columns))

    def told(self, path: str) -> str:
        """A field of Debezium's documents, which may have an envelope."""
        place = ".".join(map(quote, path.split(".")))
        has_envelope = PAYLOAD.lower() in self.columns
        return f"coalesce({quote(PAYLOAD)}.{place}, {place})" if has_envelope else place

    @property
    def operation(self) -> str:
        """What happened, as text."""
        return self.told("op") if self.source.format == "debezium" else "type"

    @property
    def table(self) -> str:
        """The table of a document, with its schema or database."""
        if self.source.format != "debezium":
            return "concat(database, '.', `table`)"
        owner = f"coalesce({self.told('source.schema')}, {self.told('source.db')})"
        return f"concat({owner}, '.', {self.told('source.table')})"

    @property
    def is_tombstone(self) -> str:
        """Whether a document tells nothing: behind a delete, it lets Kafka forget the key."""
        if self.source.format != "debezium":
            return "FALSE"
        return " AND ".join(f"{self.told(each)} IS NULL" for each in ("op", "before", "after"))

    @property
    def is_of_table(self) -> str:
        """Whether a document is of the table that the source asks for."""
        asked = self.source.table
        return "TRUE" if asked is None else f"{self.table} = {text_literal(asked)}"


@dataclass(frozen=True)
class _Documents:
    source: CdcSource
    events: DataFrame

    def rows(self) -> DataFrame:
        made = {"debezium": self._debezium, "maxwell": self._maxwell, "canal": self._canal}
        plain = made[self.source.format]()
        row = self._moves().join(("inline(", ")"))
        image = plain.selectExpr(*self._sequence_names(), row)
        columns = [
            named(decoded(f"{_IMAGE}.{quote(each.name)}", each, self.source), each.name)
            for each in self.source.columns
        ]
        return image.selectExpr(*columns, *self._sequence_names(), OPERATION)

    def _debezium(self) -> DataFrame:
        self._require("op", "before", "after", structs=("before", "after"))
        places = Places.of(self.source, self.events)
        told, operation = places.told, places.operation
        is_gone = f"{operation} IN ({_texts(self.source.values.delete)})"
        events = self.events.where(f"NOT ({places.is_tombstone})").where(places.is_of_table)
        return events.selectExpr(
            named(operation, OPERATION),
            named(f"IF({is_gone}, {told('before')}, {told('after')})", _NEW),
            named(f"IF({is_gone}, NULL, {told('before')})", _OLD),
            *self._sequence({each.path: told(each.path) for each in self.source.sequence}),
        )

    def _maxwell(self) -> DataFrame:
        self._require("type", "data", "old", structs=("data", "old"))
        places = {each.path: quote(each.path) for each in self.source.sequence}
        if "xoffset" in places:
            places["xoffset"] = f"coalesce(xoffset, {_LAST_OFFSET})"
        return self._of_table().selectExpr(
            named("type", OPERATION),
            named("data", _NEW),
            named("old", _OLD),
            *self._sequence(places),
        )

    def _canal(self) -> DataFrame:
        self._require("type", "data", "old", arrays=("data", "old"))
        others = [each.path for each in self.source.sequence if each.path != POSITION]
        both = "transform(data, (e, i) -> named_struct('new', e, 'old', get(old, i)))"
        pairs = f"posexplode_outer({both})"
        kept = [named("type", OPERATION), *(quote(each) for each in others)]
        rows = self._of_table().selectExpr(*kept, f"{pairs} AS ({_PLACE}, {_IMAGE})")
        places = {each: quote(each) for each in others}
        places[POSITION] = f"CAST({_PLACE} AS BIGINT)"
        return rows.selectExpr(
            OPERATION,
            named(f"{_IMAGE}.new", _NEW),
            named(f"{_IMAGE}.old", _OLD),
            *self._sequence(places),
        )

    def _moves(self) -> str:
        """The events of a document: where an update changed a key, the row also left the old one.

        Maxwell and Canal tell only those old values that changed.
        """
        changed, old_row = [], []
        keys = {each.lower() for each in self.source.keys}
        for column in self.source.columns:
            old, new = (f"{side}.{quote(column.name)}" for side in (_OLD, _NEW))
            value = new
            if column.name.lower() in keys:
                value = f"coalesce({old}, {new})"
                changed.append(f"({old} IS NOT NULL AND NOT {old} <=> {new})")
            old_row.append(f"{text_literal(column.name)}, {value}")
        is_update = f"{OPERATION} IN ({_texts(self.source.values.update)})"
        moved = f"{is_update} AND ({' OR '.join(changed)})"
        before = _told_row(f"'{BEFORE_MOVE}'", f"named_struct({', '.join(old_row)})")
        after = _told_row(f"'{AFTER_MOVE}'", _NEW)
        return f"IF({moved}, array({before}, {after}), array({_told_row(OPERATION, _NEW)}))"

    def _of_table(self) -> DataFrame:
        return self.events.where(Places.of(self.source, self.events).is_of_table)

    def _sequence(self, places: dict[str, str]) -> list[str]:
        return [named(places[each.path], each.column) for each in self.source.sequence]

    def _sequence_names(self) -> list[str]:
        return [quote(each.column) for each in self.source.sequence]

    def _require(
        self, *names: str, structs: Sequence[str] = (), arrays: Sequence[str] = ()
    ) -> None:
        """Check that the documents have ``names``."""
        found = {each.name.lower(): each.dataType for each in self.events.schema}
        for name in names:
            kind = found.get(name)
            wanted = StructType if name in structs else ArrayType if name in arrays else None
            if kind is None or (wanted is not None and not isinstance(kind, wanted)):
                what = "lack" if kind is None else f"have as {kind.simpleString()}"
                raise NotSupportedError(
                    f"{source_text(self.source)}: format {self.source.format}: its rows {what} "
                    f"{name}, so they are no documents that have been read.",
                    "Read JSON files by file_source or new_files_source without a schema, or let a "
                    "query (sql_source) give the columns of a document: from_json(value, "
                    f"'{self.source.document_schema}').",
                )


def _told_row(operation: str, image: str) -> str:
    return f"named_struct('{OPERATION}', {operation}, '{_IMAGE}', {image})"


def _texts(values: Sequence[str]) -> str:
    return ", ".join(map(text_literal, values)) or "NULL"
