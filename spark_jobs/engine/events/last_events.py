"""The last event of each key: one window over all events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from spark_jobs.contract.cdc import CdcSource, last_of
from spark_jobs.contract.source_names import source_text
from spark_jobs.contract.sql_text import RESERVED_PREFIX, quote
from spark_jobs.contract.table_versions import CHANGE_TYPE, DELETE, INSERT, UPDATE_BEFORE
from spark_jobs.engine.analysis.compared_types import is_comparable
from spark_jobs.engine.analysis.store_assignment import raised
from spark_jobs.engine.events.event_rows import column_of
from spark_jobs.engine.runtime.sql_text import named, text_literal
from spark_jobs.errors import AnalysisError, ErrorCode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TURN, _NUMBER, _BEFORE, _ROW = (
    f"{RESERVED_PREFIX}{name}_event" for name in ("turn", "number", "former", "row")
)
_REPLICA: Final = (
    "Name the column in unchanged, so that it keeps its value, or let PostgreSQL tell whole rows "
    "(REPLICA IDENTITY FULL)."
)
_WHOLE: Final = (
    "An insert, and an update that changes a key, tell whole rows: give the value in a query below "
    "it (sql_source)."
)


def last_events(source: CdcSource, rows: DataFrame, *more_keys: str) -> DataFrame:
    """Of ``rows`` (see ``event_rows``), what each key's events come to in the end.

    ``more_keys``: columns that are as good as keys. With such, an insert has to tell all values,
    and so has an update that takes a key: the row before it may be another one, whose delete was
    ignored.

    ``_change_type`` is ``delete`` where the key's row is gone. The row has the column ``deleted``,
    if the target marks deleted rows, and a struct for each column that may be unchanged: the
    sequence from which its value is; NULL where no event tells the value.

    Raises:
        AnalysisError: TYPE_MISMATCH: nothing can be told of a column's values.

    Raises, when the rows are evaluated:
        DataError: SOURCE_KEY_NOT_UNIQUE: different events of a key have the same sequence;
            CHANGE_EVENT_INVALID: a value is not told.
    """
    keys = (*source.keys, *more_keys)
    return _LastEvents(source, rows.schema, keys, told_inserts=bool(more_keys)).of(rows)


@dataclass(frozen=True)
class _LastEvents:
    source: CdcSource
    schema: StructType
    keys: tuple[str, ...]
    told_inserts: bool

    def of(self, rows: DataFrame) -> DataFrame:
        source = self.source
        for field in self._named("keys", self.keys):
            self._require_comparable(field, "keys")
        for field in self._named("sequence", [each.column for each in source.sequence]):
            self._require_comparable(field, "sequence")
        unchanged = self._named("unchanged", source.unchanged)
        window = self._window()
        place = ", ".join([*self._sequence, _TURN])
        ranked = rows.selectExpr("*", named(self._turn, _TURN)).selectExpr(
            "*",
            named(f"row_number() OVER ({window})", _NUMBER),
            named(f"lag(struct({place})) OVER ({window}) <=> struct({place})", _BEFORE),
            named(self._is_same(window), _ROW),
            *(self._last_told(each, window) for each in unchanged),
        )
        kept = ranked.where(self._is_last(unchanged))
        values = {each.name: self._told(each) for each in unchanged}
        names = [each.name for each in self.schema if each.name != CHANGE_TYPE]
        columns = [named(values.get(name, quote(name)), name) for name in names]
        columns += [named(f"{quote(_told_of(e))}.seq", last_of(e.name)) for e in unchanged]
        is_gone = f"{CHANGE_TYPE} IN ('{DELETE}', '{UPDATE_BEFORE}')"
        if source.deleted is not None:
            columns.append(named(is_gone, source.deleted))
        gone = f"CASE WHEN {is_gone} THEN '{DELETE}' ELSE {CHANGE_TYPE} END"
        return kept.selectExpr(*columns, named(gone, CHANGE_TYPE))

    def _named(self, field: str, names: tuple[str, ...] | list[str]) -> list[StructField]:
        return [column_of(self.source, self.schema, name, field) for name in names]

    @property
    def _sequence(self) -> list[str]:
        return [quote(each.column) for each in self.source.sequence]

    @property
    def _turn(self) -> str:
        """Among events of one sequence, the row before an update goes first.

        Without a sequence, what is gone goes first: a net change of a row without a key is both.
        """
        first = [UPDATE_BEFORE] if self.source.sequence else [UPDATE_BEFORE, DELETE]
        return (
            f"CASE WHEN {CHANGE_TYPE} IN ({', '.join(map(text_literal, first))}) THEN 0 ELSE 1 END"
        )

    def _window(self) -> str:
        keys = ", ".join(quote(each.name) for each in self._named("keys", self.keys))
        order = [f"{each} DESC NULLS LAST" for each in (*self._sequence, _TURN)]
        return f"PARTITION BY {keys} ORDER BY {', '.join(order)}"

    def _is_same(self, window: str) -> str:
        """Whether an event is equal to the one before it, as one that was delivered twice is."""
        values = [_compared(each) for each in self.schema]
        if None in values:
            return "FALSE"
        row = f"struct({', '.join(filter(None, values))})"
        return f"lag({row}) OVER ({window}) <=> {row}"

    def _last_told(self, column: StructField, window: str) -> str:
        """The last event that tells the column's value, or that the row is gone."""
        name, is_gone = quote(column.name), f"{CHANGE_TYPE} = '{DELETE}'"
        place = f"struct({', '.join(self._sequence) or 'TRUE AS known'})"
        told = (
            f"named_struct('seq', IF({is_gone}, NULL, {place}), 'value', {name}, 'gone', {is_gone})"
        )
        known = f"NOT coalesce({self._is_unavailable(column)}, FALSE)"
        is_told = f"{is_gone} OR ({CHANGE_TYPE} <> '{UPDATE_BEFORE}' AND {known})"
        whole = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
        first = f"first_value(IF({is_told}, {told}, NULL), TRUE) OVER ({window} {whole})"
        return named(first, _told_of(column))

    def _told(self, column: StructField) -> str:
        return f"{quote(_told_of(column))}.value"

    def _is_last(self, unchanged: list[StructField]) -> str:
        """Whether an event is the last of its key, and all that it needs is told."""
        cases = [f"WHEN {_BEFORE} AND NOT {_ROW} THEN {self._tie()}"]
        for field in unchanged if self.told_inserts else ():
            is_untold = f"{CHANGE_TYPE} = '{INSERT}' AND {self._is_unavailable(field)}"
            cases.append(f"WHEN {is_untold} THEN {self._unavailable(field, _WHOLE)}")
        cases += [
            f"WHEN {_NUMBER} > 1 THEN FALSE",
            f"WHEN {CHANGE_TYPE} IN ('{DELETE}', '{UPDATE_BEFORE}') THEN TRUE",
        ]
        for field in unchanged:
            is_gone = f"coalesce({quote(_told_of(field))}.gone, FALSE)"
            cases.append(f"WHEN {is_gone} THEN {not_told(self.source, field.name)}")
        named_so = {each.name for each in unchanged}
        for field in self.schema:
            test = self._is_unavailable(field)
            if field.name not in named_so and field.name != CHANGE_TYPE and test != "FALSE":
                cases.append(f"WHEN {test} THEN {self._unavailable(field)}")
        return f"CASE {' '.join(cases)} ELSE TRUE END"

    def _is_unavailable(self, column: StructField) -> str:
        """Whether a value is the one that stands for a value that is not told."""
        name, kind, text = quote(column.name), column.dataType, self.source.unavailable
        literal = text_literal(text)
        if isinstance(kind, StringType):
            return f"{name} = {literal}"
        if isinstance(kind, BinaryType):
            return f"{name} = X'{text.encode().hex()}'"
        if isinstance(kind, ArrayType) and isinstance(kind.elementType, StringType):
            return f"{name} = array({literal})"
        if column.name.lower() in map(str.lower, self.source.unchanged):
            raise AnalysisError(
                ErrorCode.TYPE_MISMATCH,
                f"{source_text(self.source)}: unchanged: {column.name} is of the type "
                f"{kind.simpleString()}, which cannot hold {text!r}",
                "Name columns of STRING, BINARY or ARRAY<STRING>.",
            )
        return "FALSE"

    def _unavailable(self, column: StructField, remedy: str = _REPLICA) -> str:
        problem = f"{source_text(self.source)}: {column.name} holds {self.source.unavailable!r}"
        message = text_literal(f"{problem}: an event does not tell its value")
        return raised(ErrorCode.CHANGE_EVENT_INVALID, message, remedy)

    def _tie(self) -> str:
        keys = ", ".join(named(quote(e), e.removeprefix(RESERVED_PREFIX)) for e in self.keys)
        start = text_literal(f"{source_text(self.source)}: different events have the key ")
        own = [each.column for each in self.source.sequence]
        names = ", ".join(each for each in own if not each.startswith(RESERVED_PREFIX))
        equal = text_literal(f" and equal values of {names}" if names else "")
        return raised(
            ErrorCode.SOURCE_KEY_NOT_UNIQUE,
            f"concat({start}, to_json(struct({keys})), {equal})",
            "Add a column to sequence that tells which event is the last.",
        )

    def _require_comparable(self, field: StructField, place: str) -> None:
        kind: DataType = field.dataType
        if not is_comparable(kind):
            raise AnalysisError(
                ErrorCode.TYPE_MISMATCH,
                f"{source_text(self.source)}: {place}: {field.name} is of the type "
                f"{kind.simpleString()}, of which no value is the greatest",
                "Use a column of another type, or a value of it in a query (sql_source).",
            )


def not_told(source: CdcSource, column: str) -> str:
    """What is raised where a row would need a value that neither an event nor the row has."""
    message = f"{source_text(source)}: {column}: an update leaves the value of a row as it was, but"
    return raised(
        ErrorCode.CHANGE_EVENT_INVALID,
        text_literal(f"{message} there is no such row"),
        "Load the events before it first, or let PostgreSQL tell whole rows (REPLICA IDENTITY "
        "FULL).",
    )


def _compared(column: StructField) -> str | None:
    """A column as a value that Spark compares: maps as entries in the order of their keys."""
    return _comparable(quote(column.name), column.dataType)


def _comparable(value: str, kind: DataType, depth: int = 0) -> str | None:
    if is_comparable(kind):
        return value
    variable = f"e{depth}"
    if isinstance(kind, StructType):
        parts = [_comparable(f"{value}.{quote(e.name)}", e.dataType, depth) for e in kind]
        known = [part for part in parts if part is not None]
        is_null = f"({value} IS NULL)"
        return f"struct({', '.join([is_null, *known])})" if len(known) == len(parts) else None
    if isinstance(kind, ArrayType):
        part = _comparable(variable, kind.elementType, depth + 1)
        return None if part is None else f"transform({value}, {variable} -> {part})"
    if isinstance(kind, MapType) and is_comparable(kind.keyType):
        part = _comparable(f"{variable}.value", kind.valueType, depth + 1)
        entry = f"struct({variable}.key AS key, {part} AS value)"
        entries = f"transform(map_entries({value}), {variable} -> {entry})"
        return None if part is None else f"array_sort({entries})"
    return None


def _told_of(column: StructField) -> str:
    return f"{RESERVED_PREFIX}told_{column.name}"
