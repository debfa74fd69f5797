"""The rows of a source as events of things: from when a row is valid, or a thing is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.types import TimestampNTZType, TimestampType

from spark_jobs.contract.cdc import CdcSource
from spark_jobs.contract.scd2 import Scd2Source
from spark_jobs.contract.source_names import called
from spark_jobs.contract.sql_text import RESERVED_PREFIX, quote
from spark_jobs.contract.table_versions import CHANGE_TYPE, DELETE, UPDATE_BEFORE
from spark_jobs.engine.analysis.scd2_roles import Roles
from spark_jobs.engine.analysis.store_assignment import ErrorLocation, raised, stored
from spark_jobs.engine.events.event_states import (
    AT,
    GONE,
    last_of_each_time,
    untold_flags,
    with_moves,
)
from spark_jobs.engine.runtime.sql_text import named, text_literal, type_text
from spark_jobs.errors import ErrorCode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SNAPSHOT: Final = f"{RESERVED_PREFIX}snapshot"
_LAST: Final = f"{RESERVED_PREFIX}last"
_EXPECTED: Final = "Leave such rows out, or give them a value, in a query below it (sql_source)."


def source_events(
    rows: DataFrame, spec: Scd2Source, roles: Roles, changes: CdcSource | None
) -> DataFrame:
    """The rows of a source with the target's types: keys, values, ``__merge_at``, ``__merge_gone``.

    Rows of changes also have ``__merge_snapshot``. Deletes that are ignored are left out; of
    ``changes``, events that are rows of a ``cdc_source``, the last of each key and time is kept. No
    row is read yet.

    Raises, when the rows are evaluated:
        DataError: NOT_NULL_VIOLATION or VALUE_NOT_STORABLE, naming the column.
    """
    label = called(spec.source)
    gone = _gone(spec, roles)
    columns = [named(_stored(name, roles, label, is_key=True), name) for name in roles.keys]
    for name in roles.values:  # those of a delete are stored nowhere
        value = _stored(name, roles, label, is_key=False)
        columns.append(named(f"CASE WHEN {gone} THEN NULL ELSE {value} END", name))
    if changes is not None:
        rows = with_moves(changes, rows)
    if spec.tells_deletes and spec.hard_deletes == "ignore":
        rows = rows.where(f"NOT ({gone})")
    at = _time(spec, roles, gone)
    if changes is not None:
        rows, at = last_of_each_time(changes, rows.selectExpr("*", named(at, AT))), AT
        columns += untold_flags(changes, roles, gone)
    columns += [named(at, AT), named(gone, GONE)]
    if roles.snapshot is not None:
        columns.append(named(quote(roles.snapshot.name), _SNAPSHOT))
    return rows.selectExpr(*columns)


def told_events(events: DataFrame, spec: Scd2Source, roles: Roles) -> DataFrame:
    """What rows of changes tell: deletes of rows that others replace are none of things.

    Of several rows that a thing has from one time on, those of the last snapshot count. Other
    events are as they are.
    """
    if not spec.has_changes:
        return events
    keys = ", ".join(map(quote, roles.keys))
    last = f"max(CASE WHEN NOT {GONE} THEN {_SNAPSHOT} END) OVER (PARTITION BY {keys})"
    newest = f"rank() OVER (PARTITION BY {keys}, {AT}, {GONE} ORDER BY {_SNAPSHOT} DESC)"
    number = f"{RESERVED_PREFIX}rank"
    told = events.selectExpr("*", named(last, _LAST), named(newest, number))
    is_told = f"NOT {GONE} OR {_LAST} IS NULL OR {_LAST} < {_SNAPSHOT}"
    return told.where(f"({is_told}) AND {number} = 1").drop(_SNAPSHOT, _LAST, number)


def open_end(spec: Scd2Source, roles: Roles) -> str:
    """``open_end`` as SQL, of the type of ``valid_to``."""
    kind = type_text(roles.types[roles.valid_to])
    return f"CAST({'NULL' if spec.open_end is None else text_literal(spec.open_end)} AS {kind})"


def as_of(spec: Scd2Source, roles: Roles) -> str:
    """``as_of`` as SQL, of the type of ``valid_from``."""
    assert spec.as_of is not None  # noqa: S101 - the contract checks where it is needed
    return f"CAST({text_literal(spec.as_of.strip())} AS {type_text(roles.types[roles.valid_from])})"


def _stored(name: str, roles: Roles, label: str, *, is_key: bool) -> str:
    given = roles.given[name]
    column = quote(given.name)
    text = stored(column, given.dataType, roles.declared[name], ErrorLocation(label, name))
    if not is_key:
        return text
    problem = text_literal(f"{label}: {given.name} of the key is NULL in a row")
    return _not_null(text, column, problem)


def _not_null(text: str, column: str, problem: str) -> str:
    failure = raised(ErrorCode.NOT_NULL_VIOLATION, problem, _EXPECTED)
    return f"CASE WHEN {column} IS NULL THEN {failure} ELSE {text} END"


def _gone(spec: Scd2Source, roles: Roles) -> str:
    if spec.of_events:
        return f"{CHANGE_TYPE} IN ('{DELETE}', '{UPDATE_BEFORE}')"
    if roles.marker is None:
        return "FALSE"
    column = quote(roles.marker.name)
    if spec.has_changes:
        return f"{column} IN ('{DELETE}', '{UPDATE_BEFORE}')"
    return f"coalesce({column}, FALSE)"


def _existing(time: str, column: str, location: ErrorLocation) -> str:
    """``time`` of a local time, which the zone must have: others would come behind later ones."""
    problem = text_literal(f"{location}: the session's time zone skips the local time ")
    failure = raised(
        ErrorCode.VALUE_NOT_STORABLE,
        f"concat({problem}, CAST({column} AS STRING))",
        "Correct such rows in a query below it (sql_source), or set session_time_zone to the zone "
        "of these times.",
    )
    return f"CASE WHEN CAST(({time}) AS TIMESTAMP_NTZ) <> {column} THEN {failure} ELSE {time} END"


def _time(spec: Scd2Source, roles: Roles, gone: str) -> str:
    if roles.effective is None:
        return as_of(spec, roles)
    column, label = quote(roles.effective.name), called(spec.source)
    location = ErrorLocation(label, roles.effective.name)
    kind = roles.declared[roles.valid_from]
    text = stored(column, roles.effective.dataType, kind, location)
    if isinstance(roles.effective.dataType, TimestampNTZType) and isinstance(kind, TimestampType):
        text = _existing(text, column, location)
    if spec.open_end is not None:
        problem = text_literal(f"{location} is not before open_end: ")
        failure = raised(
            ErrorCode.VALUE_NOT_STORABLE,
            f"concat({problem}, CAST({column} AS STRING))",
            "Filter such rows out in a query below it (sql_source), or set a later open_end.",
        )
        text = f"CASE WHEN ({text}) >= {open_end(spec, roles)} THEN {failure} ELSE {text} END"
    problem = text_literal(f"{label}: effective {roles.effective.name} is NULL in a row")
    text = _not_null(text, column, problem)
    if spec.has_changes and spec.hard_deletes != "ignore":
        return f"CASE WHEN {gone} THEN {as_of(spec, roles)} ELSE {text} END"
    return text
