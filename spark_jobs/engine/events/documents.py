"""Change events that are documents of Debezium, Maxwell or Canal, as rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import ArrayType, StructType

from spark_jobs.contract.cdc import CdcSource
from spark_jobs.contract.event_documents import PAYLOAD, POSITION
from spark_jobs.contract.identifiers import RESERVED_PREFIX, quote
from spark_jobs.contract.source_names import source_text
from spark_jobs.engine.events.encodings import decoded
from spark_jobs.engine.events.operations import BEFORE_MOVE, OPERATION
from spark_jobs.engine.runtime.sql_text import named, text_literal
from spark_jobs.errors import NotSupportedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
        found = self._require("op", "before", "after", structs=("before", "after"))
        has_envelope = PAYLOAD.lower() in found

        def told(path: str) -> str:
            place = ".".join(map(quote, path.split(".")))
            return f"coalesce({quote(PAYLOAD)}.{place}, {place})" if has_envelope else place

        operation = told("op")
        is_gone = f"{operation} IN ({_texts(self.source.values.delete)})"
        # Behind a delete, a message without a value lets Kafka forget the key.
        parts = [f"{told(each)} IS NULL" for each in ("op", "before", "after")]
        events = self.events.where(f"NOT ({' AND '.join(parts)})")
        if self.source.table is not None:
            owner = f"coalesce({told('source.schema')}, {told('source.db')})"
            name = f"concat({owner}, '.', {told('source.table')})"
            events = events.where(f"{name} = {text_literal(self.source.table)}")
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
        for each in self.source.columns:
            old, new = (f"{side}.{quote(each.name)}" for side in (_OLD, _NEW))
            value = new
            if each.name.lower() in keys:
                value = f"coalesce({old}, {new})"
                changed.append(f"({old} IS NOT NULL AND NOT {old} <=> {new})")
            old_row.append(f"{text_literal(each.name)}, {value}")
        is_update = f"{OPERATION} IN ({_texts(self.source.values.update)})"
        now = f"named_struct('{OPERATION}', {OPERATION}, '{_IMAGE}', {_NEW})"
        before = (
            f"named_struct('{OPERATION}', '{BEFORE_MOVE}', '{_IMAGE}', "
            f"named_struct({', '.join(old_row)}))"
        )
        moved = f"{is_update} AND ({' OR '.join(changed)})"
        return f"IF({moved}, array({before}, {now}), array({now}))"

    def _of_table(self) -> DataFrame:
        if self.source.table is None:
            return self.events
        name = text_literal(self.source.table)
        return self.events.where(f"concat(database, '.', `table`) = {name}")

    def _sequence(self, places: dict[str, str]) -> list[str]:
        return [named(places[each.path], each.column) for each in self.source.sequence]

    def _sequence_names(self) -> list[str]:
        return [quote(each.column) for each in self.source.sequence]

    def _require(
        self, *names: str, structs: Sequence[str] = (), arrays: Sequence[str] = ()
    ) -> set[str]:
        """The columns of the documents, which must have ``names``."""
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
        return set(found)


def _texts(values: Sequence[str]) -> str:
    return ", ".join(map(text_literal, values)) or "NULL"
