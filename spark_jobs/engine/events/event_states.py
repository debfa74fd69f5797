"""Change events as states of things: what each key is from each time on, at which it has events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import TimestampType

from spark_jobs.contract.cdc import CdcSource, SequenceColumn, last_of
from spark_jobs.contract.event_documents import ticks
from spark_jobs.contract.scd2 import Scd2Source
from spark_jobs.contract.source_names import source_text
from spark_jobs.contract.sources import Source
from spark_jobs.contract.sql_text import RESERVED_PREFIX, quote
from spark_jobs.contract.table_versions import CHANGE_TYPE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from spark_jobs.engine.analysis.scd2_roles import Roles
from spark_jobs.engine.analysis.store_assignment import raised
from spark_jobs.engine.events.encodings import is_time
from spark_jobs.engine.events.last_events import last_events, not_told
from spark_jobs.engine.runtime.sql_text import named, text_literal
from spark_jobs.errors import ErrorCode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# What a state has beside keys and values: from when on it is, and whether the thing is gone.
AT: Final = f"{RESERVED_PREFIX}at"
GONE: Final = f"{RESERVED_PREFIX}gone"
_EPOCH: Final = "TIMESTAMP'1970-01-01 00:00:00Z'"
_MICROS: Final = 1_000_000
# Of the number that ``effective`` is in documents, what is less than a microsecond.
_REST: Final = f"{RESERVED_PREFIX}rest"
_EVENT, _TURN, _LAST, _OTHERS = (
    f"{RESERVED_PREFIX}{name}" for name in ("each", "turn", "told", "others")
)
# What is there at a time: the end of a version, a version, or an event.
_END, _VERSION, _NEW = 0, 1, 2


def change_events(sources: Iterable[Source], spec: Scd2Source) -> CdcSource | None:
    """The source of change events of which ``spec`` is made; None: it is of other rows."""
    for source in sources:
        if source.name == spec.source and isinstance(source, CdcSource):
            return source
    return None


def dated(events: CdcSource | None, spec: Scd2Source, rows: DataFrame) -> DataFrame:
    """``rows`` with ``effective`` as a time, where documents have it as a number.

    What microseconds do not tell of the number is in a column of its own.

    Raises, when the rows are evaluated:
        DataError: VALUE_NOT_STORABLE, naming the column: the number is no time.
    """
    if events is None:
        return rows
    for sequence_column in events.sequence:
        parts = ticks(events.format, sequence_column.path)
        if parts is None or sequence_column.column.lower() != (spec.effective or "").lower():
            continue
        number = f"CAST({quote(sequence_column.column)} AS DECIMAL(20,0))"
        micros = f"floor({number} * {_MICROS} / {parts})"
        seconds = f"CAST({micros} / {_MICROS} AS DECIMAL(18,6))"
        time = f"{_EPOCH} + make_dt_interval(0, 0, 0, {seconds})"
        is_none = f"NOT ({is_time(number, parts)})"
        time = f"CASE WHEN {is_none} THEN {_no_time(events, sequence_column)} ELSE {time} END"
        columns = [
            named(time, e) if e == sequence_column.column else quote(e) for e in rows.columns
        ]
        if parts > _MICROS:
            rest = f"pmod({quote(sequence_column.column)}, {parts // _MICROS})"
            columns.append(named(rest, _REST))
        return rows.selectExpr(*columns)
    return rows


def _no_time(events: CdcSource, place: SequenceColumn) -> str:
    start = f"{source_text(events)}: sequence: {place.column}: {place.path} of an event is "
    problem = f"concat({text_literal(start)}, CAST({quote(place.column)} AS STRING)"
    problem += ", ', which is no time of the years 1 to 9999')"
    return raised(
        ErrorCode.VALUE_NOT_STORABLE,
        problem,
        "Leave such events out in a query below it (sql_source), or name another place in "
        "sequence.",
    )


def last_of_each_time(events: CdcSource, rows: DataFrame) -> DataFrame:
    """Of ``rows`` with ``__merge_at``, the last event of each key and time, as ``last_events``."""
    return last_events(_with_rest(events, rows), rows, AT)


def with_moves(events: CdcSource, rows: DataFrame) -> DataFrame:
    """``rows`` with rows before updates only where the key changed.

    The update is then an insert: what it does not tell, no row of its new key has told.
    """
    if not events.values.before:
        return rows
    place = ", ".join(quote(each.column) for each in events.sequence)
    key = ", ".join((*map(quote, events.keys), place))
    is_before = f"{CHANGE_TYPE} = '{UPDATE_BEFORE}'"
    kind = CHANGE_TYPE
    if events.unchanged:
        has_own, has_any = (f"max({is_before}) OVER (PARTITION BY {each})" for each in (key, place))
        is_moved = f"{CHANGE_TYPE} = '{UPDATE_AFTER}' AND {has_any} AND NOT {has_own}"
        kind = f"CASE WHEN {is_moved} THEN '{INSERT}' ELSE {CHANGE_TYPE} END"
    has_others = f"max(NOT ({is_before})) OVER (PARTITION BY {key})"
    names = [quote(each) for each in rows.columns if each != CHANGE_TYPE]
    rows = rows.selectExpr(*names, named(kind, CHANGE_TYPE), named(has_others, _OTHERS))
    return rows.where(f"NOT ({_OTHERS} AND {is_before})").drop(_OTHERS)


def _with_rest(events: CdcSource, rows: DataFrame) -> CdcSource:
    """``events`` in the order of the numbers of which ``dated`` made times."""
    if _REST not in rows.columns:
        return events
    sequence: list[SequenceColumn] = []
    for sequence_column in events.sequence:
        sequence.append(sequence_column)
        if isinstance(rows.schema[sequence_column.column].dataType, TimestampType):
            sequence.append(SequenceColumn(_REST, sequence_column.path))
    return replace(events, sequence=tuple(sequence))


def untold_flags(events: CdcSource, roles: Roles, gone: str) -> list[str]:
    """For each column that may be unchanged: whether no event of the time tells its value."""
    return [
        named(f"NOT ({gone}) AND {quote(last_of(given))} IS NULL", _untold(name))
        for name, given in _unchanged(events, roles)
    ]


def told_values(
    states: DataFrame, versions: DataFrame, events: CdcSource, roles: Roles
) -> DataFrame:
    """``states`` with the values of the states before them, where events tell none.

    ``versions`` are rows of the target, all that the keys of ``states`` have.

    Raises, when the rows are evaluated:
        DataError: CHANGE_EVENT_INVALID: there is no state before.
    """
    unchanged = _unchanged(events, roles)
    if not unchanged:
        return states
    columns = states.columns
    new = states.selectExpr("*", named(str(_NEW), _TURN))
    both = _known(versions, roles, columns).unionByName(new)
    over = f"OVER (PARTITION BY {', '.join(map(quote, roles.keys))} ORDER BY {AT}, {_TURN} "
    over += "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    last_values = []
    for name, _ in unchanged:
        state = f"struct({GONE} AS gone, {quote(name)} AS value)"
        is_told = f"{GONE} OR NOT {quote(_untold(name))}"
        last = f"last_value(CASE WHEN {is_told} THEN {state} END, TRUE) {over}"
        last_values.append(named(last, f"{_LAST}_{name}"))
    found = both.selectExpr("*", *last_values).where(f"{_TURN} = {_NEW}")
    values = {name: _value(events, name, given) for name, given in unchanged}
    return found.selectExpr(*(named(values.get(e, quote(e)), e) for e in columns))


def _value(events: CdcSource, name: str, given: str) -> str:
    last = quote(f"{_LAST}_{name}")
    is_lost = f"{last} IS NULL OR {last}.gone"
    return (
        f"CASE WHEN NOT {quote(_untold(name))} THEN {quote(name)} "
        f"WHEN {is_lost} THEN {not_told(events, given)} ELSE {last}.value END"
    )


def _known(versions: DataFrame, roles: Roles, columns: list[str]) -> DataFrame:
    """The states that the target's rows tell, with ``columns``: each version, and its end."""
    record = f"coalesce({quote(roles.deleted)}, FALSE)" if roles.deleted else "FALSE"
    begun = f"struct({quote(roles.valid_from)} AS at, {record} AS gone, {_VERSION} AS turn)"
    ended = f"struct({quote(roles.valid_to)} AS at, TRUE AS gone, {_END} AS turn)"
    own = {AT: f"{_EVENT}.at", GONE: f"{_EVENT}.gone"}
    rows = versions.selectExpr("*", named(f"explode(array({begun}, {ended}))", _EVENT))
    given = {e.lower() for e in roles.columns}
    parts = [named(own.get(e, quote(e) if e.lower() in given else "FALSE"), e) for e in columns]
    return rows.where(f"{_EVENT}.at IS NOT NULL").selectExpr(*parts, named(f"{_EVENT}.turn", _TURN))


def _unchanged(events: CdcSource, roles: Roles) -> list[tuple[str, str]]:
    """The columns that may be unchanged: as the target spells them, and as events do."""
    asked = {each.lower() for each in events.unchanged}
    pairs = ((name, roles.given[name].name) for name in roles.values)
    return [(name, given) for name, given in pairs if given.lower() in asked]


def _untold(name: str) -> str:
    return f"{RESERVED_PREFIX}untold_{name}"
