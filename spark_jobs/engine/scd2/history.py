"""How versions change by events: window functions over both, key by key.

A version is an event of its thing, and so is the end of a version that no other follows. New events
are put among these by their times; an event that says what the one before it says is none. What
then differs from the stored rows is what changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from spark_jobs.contract.scd2 import (
    ACTION,
    CLOSED,
    CORRECTED,
    INSERTED,
    REMOVED,
    Scd2Source,
)
from spark_jobs.contract.source_names import called
from spark_jobs.contract.sql_text import RESERVED_PREFIX, quote
from spark_jobs.engine.analysis.scd2_roles import Roles
from spark_jobs.engine.analysis.store_assignment import raised
from spark_jobs.engine.events.event_states import AT, GONE
from spark_jobs.engine.runtime.sql_text import named, text_literal
from spark_jobs.engine.scd2.events import as_of, open_end
from spark_jobs.errors import ErrorCode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _own(name: str) -> str:
    return f"{RESERVED_PREFIX}{name}"


# Whether the source has anything of a version's key.
PRESENT: Final = _own("present")
# What an event says: a version, a gap that no row tells, or a row that tells a deletion.
_VERSION, _GAP, _RECORD = 0, 1, 2
_KIND, _NEW, _ABSENT, _ROW = (_own(each) for each in ("kind", "new", "absent", "row"))
_VALUES, _TRACKED, _COMPARED = (_own(each) for each in ("values", "tracked", "compared"))
_UNTIL, _CURRENT, _REPEATS = (_own(each) for each in ("until", "current", "repeats"))
_NEXT, _BEFORE, _AFTER, _NEWEST = (_own(each) for each in ("next", "before", "after", "newest"))
_DROPPED, _END, _LAST = (_own(each) for each in ("dropped", "end", "last"))
_EVENT: Final = _own("event")
# Nobody means it, unless it is open_end.
_NEVER: Final = "DATE'9999-01-01'"


@dataclass(frozen=True, slots=True)
class History:
    """Computes the changes of a dimension's versions; makes text, reads nothing."""

    spec: Scd2Source
    roles: Roles

    def changes(self, versions: DataFrame, events: DataFrame) -> DataFrame:
        """A row for each version that changes: the target's columns and ``scd2_action``.

        ``versions`` are rows of the target, all that their keys have, with the target's columns
        and ``__merge_present``; ``events`` are those of ``source_events`` and ``told_events``.

        Raises, when the rows are evaluated:
            DataError: SOURCE_KEY_NOT_UNIQUE, VERSION_LATE, VERSION_DIFFERS or VERSIONS_INVALID,
                naming the key.
        """
        known = self._known(versions)
        every = known.unionByName(self._new(events))
        return self._changed(self._kept(self._settled(every)))

    @property
    def _keys(self) -> str:
        return ", ".join(map(quote, self.roles.keys))

    @property
    def _over(self) -> str:
        return f"OVER (PARTITION BY {self._keys} ORDER BY {AT})"

    def _row_values(self) -> list[str]:
        """Of a row: its values, and those that are tracked and compared, as structs."""
        roles = self.roles
        parts = ((_VALUES, roles.values), (_TRACKED, roles.tracked), (_COMPARED, roles.compared))
        return [named(_struct(names), name) for name, names in parts]

    def _known(self, versions: DataFrame) -> DataFrame:
        """The events that the target's rows tell: each row, and the gap behind it, if any."""
        roles, end = self.roles, open_end(self.spec, self.roles)
        record = f"coalesce({quote(roles.deleted)}, FALSE)" if roles.deleted else "FALSE"
        current = quote(roles.current) if roles.current else "CAST(NULL AS BOOLEAN)"
        until, over = quote(roles.valid_to), self._over
        rows = versions.selectExpr(
            *map(quote, roles.keys),
            *self._row_values(),
            named(quote(roles.valid_from), AT),
            named(f"CASE WHEN {until} <=> {end} THEN NULL ELSE {until} END", _END),
            named(until, _UNTIL),
            named(current, _CURRENT),
            named(f"CASE WHEN {record} THEN {_RECORD} ELSE {_VERSION} END", _KIND),
            PRESENT,
        ).selectExpr(
            "*",
            named(f"lead({AT}) {over}", _NEXT),
            named(f"lag(struct({_KIND}, {_TRACKED}, {_END})) {over}", _BEFORE),
        )
        rows = rows.where(f"CASE WHEN {self._is_broken()} THEN {self._broken()} ELSE TRUE END")
        repeats = (
            f"CASE WHEN {_KIND} = {_RECORD} THEN {_BEFORE} IS NULL OR "
            f"{_BEFORE}.{_KIND} = {_RECORD} OR {_BEFORE}.{_END} < {AT} "
            f"ELSE coalesce({_BEFORE}.{_KIND} = {_VERSION} AND {_BEFORE}.{_END} = {AT} AND "
            f"{_BEFORE}.{_TRACKED} <=> {_TRACKED}, FALSE) END"
        )
        leaves_gap = f"{_END} IS NOT NULL AND ({_NEXT} IS NULL OR {_END} < {_NEXT})"
        known_events = [
            _event(AT, _KIND, has_row="TRUE", repeats=repeats),
            f"CASE WHEN {leaves_gap} THEN {_event(_END, str(_GAP))} END",
        ]
        if self.spec.finds_absent:
            gone = _event(as_of(self.spec, roles), str(self._gone), is_new="TRUE", absent="TRUE")
            known_events.append(f"CASE WHEN {_NEXT} IS NULL AND NOT {PRESENT} THEN {gone} END")
        exploded = f"explode(filter(array({', '.join(known_events)}), each -> each IS NOT NULL))"
        kept = [*map(quote, roles.keys), _VALUES, _TRACKED, _COMPARED, _UNTIL, _CURRENT]
        return rows.selectExpr(*kept, named(exploded, _EVENT)).selectExpr(*kept, f"{_EVENT}.*")

    @property
    def _gone(self) -> int:
        """What a deletion becomes."""
        return _RECORD if self.spec.hard_deletes == "new_record" else _GAP

    def _is_broken(self) -> str:
        """Whether a row does not go on where another ends, or before it."""
        never = f"{_END} >= {_NEVER}"
        told = f"({_CURRENT} AND {_END} IS NOT NULL)"
        overlap = f"{_NEXT} IS NOT NULL AND ({_END} IS NULL OR {_END} > {_NEXT} OR {_NEXT} <= {AT})"
        return f"{AT} IS NULL OR {_END} <= {AT} OR {never} OR {told} OR ({overlap})"

    def _broken(self) -> str:
        spec = self.spec
        start = text_literal("the versions in the target are no history of the key ")
        problem = text_literal(
            f": {self.roles.valid_from} is NULL or occurs twice, versions overlap, or "
            f"{self.roles.valid_to} of one that is valid is not "
            f"{'NULL' if spec.open_end is None else spec.open_end} (open_end); the version from "
        )
        remedy = (
            "Correct these rows with UPDATE or DELETE. A version ends when the next one begins, at "
            "that very time. If valid versions end at a date, name it in open_end."
        )
        at = f"coalesce(CAST({AT} AS STRING), 'NULL')"
        message = f"concat({start}, {self._key_text()}, {problem}, {at})"
        return raised(ErrorCode.VERSIONS_INVALID, message, remedy)

    def _new(self, events: DataFrame) -> DataFrame:
        """The events of the source."""
        kind = f"CASE WHEN {GONE} THEN {self._gone} ELSE {_VERSION} END"
        until = f"CAST(NULL AS {self.roles.types[self.roles.valid_to].simpleString()})"
        kept = [*map(quote, self.roles.keys), _VALUES, _TRACKED, _COMPARED, _UNTIL, _CURRENT]
        event = _event(AT, kind, is_new="TRUE")
        found = events.selectExpr(
            *map(quote, self.roles.keys),
            *self._row_values(),
            named(until, _UNTIL),
            named("CAST(NULL AS BOOLEAN)", _CURRENT),
            named(event, _EVENT),
        )
        return found.selectExpr(*kept, f"{_EVENT}.*")

    def _settled(self, events: DataFrame) -> DataFrame:
        """One event for each time of a key: the stored one, or the new one that corrects it."""
        over = f"OVER (PARTITION BY {self._keys} ORDER BY {AT}, {_NEW})"
        event = f"struct({AT}, {_NEW}, {_KIND}, {_TRACKED}, {_COMPARED}, {_ROW}, {_ABSENT})"
        newest = f"max(CASE WHEN NOT {_NEW} THEN {AT} END) OVER (PARTITION BY {self._keys})"
        rows = events.selectExpr(
            "*",
            named(f"lag({event}) {over}", _BEFORE),
            named(f"lead({event}) {over}", _AFTER),
            named(newest, _NEWEST),
        )
        twice = f"{_NEW} AND {_BEFORE}.{AT} = {AT} AND {_BEFORE}.{_NEW}"
        met = f"{_NEW} AND {_BEFORE}.{AT} = {AT} AND NOT {_BEFORE}.{_NEW}"
        is_kept = (
            f"CASE WHEN {twice} THEN CASE WHEN {self._is_same_row()} THEN FALSE "
            f"ELSE {self._tie()} END "
            f"WHEN {met} THEN CASE WHEN {_says_same(_BEFORE)} THEN FALSE "
            f"ELSE {self._correction()} END "
        )
        if self.spec.corrections == "overwrite":
            replaced = f"NOT {_NEW} AND {_AFTER}.{AT} = {AT} AND NOT ({_says_same(_AFTER)})"
            is_kept += f"WHEN {replaced} THEN FALSE "
        has_row = f"CASE WHEN {met} THEN {_BEFORE}.{_ROW} ELSE {_ROW} END"
        is_correction = f"coalesce({met}, FALSE)"
        kept = rows.where(f"{is_kept}ELSE TRUE END")
        others = [each for each in rows.columns if each not in (_BEFORE, _AFTER, _ROW)]
        return kept.selectExpr(
            *map(quote, others), named(has_row, _ROW), named(is_correction, _own("corrects"))
        )

    def _is_same_row(self) -> str:
        """Whether a row of the source says what the one before it says, of the same time."""
        is_whole = len(self.roles.compared) == len(self.roles.values)
        rows = f"{_COMPARED} <=> {_BEFORE}.{_COMPARED}" if is_whole else "FALSE"
        return f"({_KIND} = {_BEFORE}.{_KIND} AND ({_KIND} <> {_VERSION} OR {rows}))"

    def _tie(self) -> str:
        spec = self.spec
        start = text_literal(f"{called(spec.source)}: different rows have the key ")
        remedy = (
            "Keep one of them with deduplicate(...), by the key and the time, or name the column "
            "that tells their times in effective."
        )
        if spec.has_changes:
            remedy += " With changes_source, net=True has one row for each key."
        return self._raised(ErrorCode.SOURCE_KEY_NOT_UNIQUE, start, remedy)

    def _correction(self) -> str:
        if self.spec.corrections != "fail":
            return "TRUE" if self.spec.corrections == "overwrite" else "FALSE"
        start = text_literal(f"{called(self.spec.source)}: other values than stored has the key ")
        return self._raised(
            ErrorCode.VERSION_DIFFERS,
            start,
            "Set corrections='overwrite' to store the new values in that version, or 'ignore' to "
            "keep the stored ones.",
        )

    def _late(self) -> str:
        start = text_literal(
            f"{called(self.spec.source)}: older than the newest version is the key "
        )
        remedy = "Run the runs in order, or filter such rows out."
        if self.spec.effective is not None:
            remedy = "Set late='insert_between' to put it among the versions, or filter it out."
        return self._raised(ErrorCode.VERSION_LATE, start, remedy)

    def _kept(self, events: DataFrame) -> DataFrame:
        """With what each event becomes: events that say what the one before them says go."""
        before = f"lag(struct({_KIND}, {_TRACKED})) {self._over}"
        rows = events.selectExpr("*", named(before, _BEFORE))
        drops = (
            f"coalesce(CASE WHEN {_BEFORE} IS NULL THEN {_NEW} AND {_KIND} <> {_VERSION} "
            f"ELSE {_says_same(_BEFORE)} AND NOT {_REPEATS} END, FALSE)"
        )
        rows = rows.selectExpr("*", named(drops, _DROPPED))
        is_late = f"{_NEW} AND NOT {_DROPPED} AND NOT {_own('corrects')} AND {AT} < {_NEWEST}"
        if self.spec.late != "fail":
            is_late += f" AND {_ABSENT}"
        return rows.where(f"CASE WHEN {is_late} THEN {self._late()} ELSE TRUE END")

    def _changed(self, events: DataFrame) -> DataFrame:
        """The rows of events that are not stored as they are, as the target has them."""
        roles, spec = self.roles, self.spec
        following = f"lead(CASE WHEN NOT {_DROPPED} THEN {AT} END) IGNORE NULLS {self._over}"
        last = f"lag(CASE WHEN NOT {_DROPPED} THEN {_VALUES} END) IGNORE NULLS {self._over}"
        rows = events.selectExpr("*", named(following, _NEXT), named(last, _LAST))
        until = f"coalesce({_NEXT}, {open_end(spec, roles)})"
        is_current = f"({_NEXT} IS NULL AND {_KIND} = {_VERSION})"
        moves = f"NOT ({until} <=> {_UNTIL})"
        if roles.current:
            moves += f" OR NOT ({is_current} <=> {_CURRENT})"
        action = (
            f"CASE WHEN {_DROPPED} OR {_KIND} = {_GAP} THEN CASE WHEN {_ROW} THEN '{REMOVED}' END "
            f"WHEN NOT {_NEW} THEN CASE WHEN {moves} THEN '{CLOSED}' END "
            f"WHEN {_ROW} THEN '{CORRECTED}' ELSE '{INSERTED}' END"
        )
        values = f"CASE WHEN {_NEW} AND {_KIND} = {_RECORD} THEN {_LAST} ELSE {_VALUES} END"
        found = rows.selectExpr(
            *map(quote, roles.keys),
            named(values, _VALUES),
            named(AT, AT),
            named(until, _END),
            named(is_current, _CURRENT),
            named(f"{_KIND} = {_RECORD}", GONE),
            named(action, ACTION),
        ).where(f"{ACTION} IS NOT NULL")
        places: dict[str | None, str] = {name: quote(name) for name in roles.keys}
        places |= {name: f"{_VALUES}.{quote(name)}" for name in roles.values}
        places |= {roles.valid_from: AT, roles.valid_to: _END}
        places |= {roles.current: _CURRENT, roles.deleted: GONE}
        columns = [named(places[name], name) for name in roles.columns]
        return found.selectExpr(*columns, ACTION)

    def _key_text(self) -> str:
        return f"to_json({_struct(self.roles.keys)})"

    def _raised(self, code: ErrorCode, start: str, remedy: str) -> str:
        since = text_literal(" from ")
        message = f"concat({start}, {self._key_text()}, {since}, CAST({AT} AS STRING))"
        return raised(code, message, remedy)


def _event(
    at: str,
    kind: str,
    has_row: str = "FALSE",
    is_new: str = "FALSE",
    absent: str = "FALSE",
    repeats: str = "FALSE",
) -> str:
    parts = {AT: at, _KIND: kind, _NEW: is_new, _ROW: has_row, _ABSENT: absent, _REPEATS: repeats}
    return f"struct({', '.join(named(text, name) for name, text in parts.items())})"


def _struct(names: Iterable[str]) -> str:
    columns = ", ".join(map(quote, names))
    return f"struct({columns})" if columns else "named_struct('none', CAST(NULL AS BOOLEAN))"


def _says_same(other: str) -> str:
    """Whether an event says what ``other``, a struct, says: gone as well, or the same values."""
    gone = f"({_KIND} <> {_VERSION} AND {other}.{_KIND} <> {_VERSION})"
    same = f"({_KIND} = {_VERSION} AND {other}.{_KIND} = {_VERSION} AND "
    return f"({gone} OR {same}{_TRACKED} <=> {other}.{_TRACKED}))"
