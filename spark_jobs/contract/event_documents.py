"""The JSON documents in which Debezium, Maxwell and Canal write change events.

Sources: Debezium's documentation of its PostgreSQL and MySQL connectors (change events, data type
mappings, temporal values, decimal values), Maxwell's of its data format, and Canal's FlatMessage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from spark_jobs.contract.checks import did_you_mean, require, require_among
from spark_jobs.contract.spark_types import SparkType, parse_type
from spark_jobs.contract.sql_text import quote
from spark_jobs.errors import NotSupportedError, RequestError

# Beside the fields of an event, the place of a row in Canal's list of rows.
POSITION: Final = "position"
# The schema envelope of Kafka Connect's JSON converter.
PAYLOAD: Final = "payload"

# What orders events, by format: place in a document -> type.
_PLACES: Final[Mapping[str, Mapping[str, str]]] = {
    "debezium": {
        **dict.fromkeys(("ts_ms", "ts_us", "ts_ns"), "BIGINT"),
        **dict.fromkeys(("source.ts_ms", "source.ts_us", "source.ts_ns"), "BIGINT"),
        **dict.fromkeys(("source.lsn", "source.txId", "source.pos", "source.row"), "BIGINT"),
        "source.file": "STRING",
        "transaction.total_order": "BIGINT",
    },
    "maxwell": dict.fromkeys(("ts", "xid", "xoffset"), "BIGINT"),
    "canal": {**dict.fromkeys(("es", "ts", "id"), "BIGINT"), POSITION: "BIGINT"},
}
# How many of these are a second, of places that tell when something happened.
_TICKS: Final[Mapping[str, Mapping[str, int]]] = {
    "debezium": {
        f"{start}{name}": ticks
        for start in ("", "source.")
        for name, ticks in (("ts_ms", 1_000), ("ts_us", 1_000_000), ("ts_ns", 1_000_000_000))
    },
    "maxwell": {"ts": 1},
    "canal": {"es": 1_000, "ts": 1_000},
}
# What names the table of an event.
_TABLES: Final[Mapping[str, str]] = {
    "debezium": "db STRING, schema STRING, `table` STRING",
    "maxwell": "database STRING, `table` STRING",
    "canal": "database STRING, `table` STRING",
}
DAYS: Final = "Date"
MILLIS: Final = "Timestamp"
MICROS: Final = "MicroTimestamp"
NANOS: Final = "NanoTimestamp"
ZONED: Final = "ZonedTimestamp"
UNSCALED: Final = "Decimal"
VARIABLE: Final = "VariableScaleDecimal"
TEXT: Final = "string"
DOUBLE: Final = "double"
# How Debezium writes values of a type; the first is meant where nothing is said, if it is certain.
_ENCODINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "date": (DAYS,),
    "timestamp": (ZONED, MILLIS, MICROS, NANOS),
    "timestamp_ntz": (MILLIS, MICROS, NANOS),
    "decimal": (UNSCALED, VARIABLE, TEXT, DOUBLE),
}
_UNCERTAIN: Final = {
    "timestamp_ntz": "time.precision.mode and the column's precision decide",
    "decimal": "decimal.handling.mode decides",
}
# How values stand in JSON, where they do not stand there as their type.
_RAW: Final = {
    DAYS: "INT",
    MILLIS: "BIGINT",
    MICROS: "BIGINT",
    NANOS: "BIGINT",
    UNSCALED: "BINARY",
    VARIABLE: "STRUCT<scale: INT, value: BINARY>",
}
_SAME: Final = {
    "timestamp_ltz": "timestamp",
    "dec": "decimal",
    "numeric": "decimal",
    **dict.fromkeys(("char", "character", "varchar"), "string"),
}
_REFUSED: Final = ("time", "interval", "variant", "geometry", "geography", "void")


@dataclass(frozen=True, slots=True)
class RowColumn:
    """A column of rows in documents: its type, and how its values are written; None: as it is."""

    name: str
    type: str
    encoding: str | None = None

    @property
    def raw_type(self) -> str:
        """The type as which its values are read."""
        return _RAW.get(self.encoding or "", self.type)


def row_columns(format_: str, schema: str, encodings: Mapping[str, str]) -> tuple[RowColumn, ...]:
    """The columns of rows in documents of a format.

    Raises:
        RequestError: REQUEST_INVALID, naming the column.
        NotSupportedError: a column of a type that these documents do not tell exactly.
    """
    try:
        parsed = parse_type(f"STRUCT<{schema}>")
    except RequestError as error:
        raise error.within("schema") from None
    asked = {name.lower(): told for name, told in encodings.items()}
    names = [each.name.lower() for each in parsed.fields]
    for name in names:
        require(names.count(name) == 1, "schema", f"{name} occurs more than once")
    for name in encodings:
        require(name.lower() in names, f"encodings.{name}", "is not a column of schema")
    return tuple(
        RowColumn(each.name, type_text(each.type), _encoding(format_, each.name, each.type, asked))
        for each in parsed.fields
    )


def _encoding(format_: str, name: str, kind: SparkType, asked: Mapping[str, str]) -> str | None:
    own = _SAME.get(kind.name, kind.name)
    if own in _REFUSED or (format_ == "canal" and own == "binary"):
        raise NotSupportedError(
            f"schema: {name}: {format_} documents do not tell values of the type {kind.name} "
            "exactly.",
            "Declare the column as STRING or BIGINT, as it stands in the documents.",
        )
    given = asked.get(name.lower())
    known = _ENCODINGS.get(own, ()) if format_ == "debezium" else ()
    if given is not None:
        given = given.rpartition(".")[2]
        require(
            bool(known),
            f"encodings.{name}",
            f"{format_} documents have one way to write {kind.name}",
            "Leave it out.",
        )
        require_among(given, known, f"encodings.{name}")
        return given
    require(
        own not in _UNCERTAIN or not known,
        f"encodings.{name}",
        f"is missing: nothing tells how the connector writes {kind.name}; "
        f"{_UNCERTAIN.get(own, '')}",
        f"Name one of: {', '.join(known)}.",
    )
    return known[0] if known else None


def type_text(kind: SparkType) -> str:
    """A type in DDL; the lengths of texts are left to the target."""
    name = _SAME.get(kind.name, kind.name)
    if kind.name == "struct":
        fields = ", ".join(f"{quote(e.name)}: {type_text(e.type)}" for e in kind.fields)
        return f"STRUCT<{fields}>"
    if kind.name in ("array", "map"):
        return f"{kind.name.upper()}<{', '.join(type_text(e.type) for e in kind.fields)}>"
    if name == "decimal":
        precision, scale = (*kind.arguments, 0)[:2] if kind.arguments else (10, 0)
        return f"DECIMAL({precision},{scale})"
    return name.upper()


def require_places(format_: str, places: Sequence[str]) -> None:
    """Refuse an order by what a document does not have, or has as a text without an order.

    Raises:
        RequestError: REQUEST_INVALID.
    """
    known = _PLACES[format_]
    for place in places:
        require(
            place in known,
            "sequence",
            f"{place!r} is nothing that orders {format_} documents",
            f"{did_you_mean(place, known)} Use of these: {', '.join(known)}.".strip(),
        )


def ticks(format_: str, place: str) -> int | None:
    """In how many parts of a second a place tells a time; None: it tells none."""
    return _TICKS.get(format_, {}).get(place)


def times_of(format_: str) -> tuple[str, ...]:
    """The places that tell a time."""
    return tuple(_TICKS.get(format_, {}))


def document_schema(format_: str, columns: Sequence[RowColumn], places: Sequence[str]) -> str:
    """The columns, in Spark DDL, as which documents are read."""
    row = ", ".join(f"{quote(each.name)}: {each.raw_type}" for each in columns)
    known, top = _PLACES[format_], [each for each in places if "." not in each]
    own = [f"{quote(each)} {known[each]}" for each in top if each != POSITION]
    if format_ == "maxwell":
        event_fields = f"type STRING, data STRUCT<{row}>, old STRUCT<{row}>, commit BOOLEAN"
        return ", ".join([event_fields, _TABLES[format_], *own])
    if format_ == "canal":
        event_fields = f"type STRING, data ARRAY<STRUCT<{row}>>, old ARRAY<STRUCT<{row}>>"
        return ", ".join([event_fields, _TABLES[format_], *own])
    fields = [f"{quote(e.split('.')[1])} {known[e]}" for e in places if e.startswith("source.")]
    source = ", ".join([*fields, _TABLES[format_]])
    parts = [
        f"before STRUCT<{row}>",
        f"after STRUCT<{row}>",
        "op STRING",
        f"source STRUCT<{source}>",
    ]
    if "transaction.total_order" in places:
        parts.append("transaction STRUCT<total_order: BIGINT>")
    inner = [*parts, *own]
    return ", ".join([*inner, f"{PAYLOAD} STRUCT<{', '.join(inner)}>"])
