"""What versions (SCD2) become by events, row by row in Python; nothing of the project is used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

Values = tuple[Any, ...]


@dataclass(frozen=True)
class Version:
    """A stored row of one key, valid from ``begin`` until ``end`` (None: still)."""

    begin: int
    end: int | None
    tracked: Values
    rest: Values = ()
    is_record: bool = False


@dataclass(frozen=True)
class Event:
    """A row of a source for one key; ``is_gone``: it says that the key is deleted."""

    time: int
    tracked: Values
    rest: Values = ()
    is_gone: bool = False
    is_absent: bool = False


@dataclass(frozen=True)
class Rules:
    """The parameters that decide."""

    hard_deletes: str = "close"
    late: str = "insert_between"
    corrections: str = "fail"


@dataclass
class _Mark:
    """What is so from a time on: values, or nothing (``tracked`` None), maybe told by a row."""

    tracked: Values | None
    rest: Values
    is_new: bool
    shown: Values = ()

    def says(self, other: _Mark) -> bool:
        return self.tracked == other.tracked


def state_at(versions: Sequence[Version], time: int) -> Values | None:
    """The tracked values that are valid at a time; None: there are none."""
    for each in versions:
        if each.begin <= time and (each.end is None or time < each.end) and not each.is_record:
            return each.tracked
    return None


def applied(
    versions: Sequence[Version], events: Iterable[Event], rules: Rules
) -> tuple[list[Version], set[str]]:
    """The versions of one key after some events, and the codes of what is wrong with them."""
    arrived, wrong = _arrived(events, rules)
    marks = _marks(versions)
    newest = max(marks, default=None)
    late: list[tuple[int, Event]] = []
    for time, event in arrived.items():
        mark = _Mark(None if event.is_gone else event.tracked, event.rest, is_new=True)
        stored = marks.get(time)
        if stored is None:
            marks[time] = mark
            if newest is not None and time < newest:
                late.append((time, event))
        elif not stored.says(mark):
            if rules.corrections == "fail":
                wrong.add("VERSION_DIFFERS")
            elif rules.corrections == "overwrite":
                marks[time] = mark
    kept = _without_repeats(versions, marks)
    for time, event in late:
        if time in kept and (rules.late == "fail" or event.is_absent):
            wrong.add("VERSION_LATE")
    return _versions(kept, rules), wrong


def _arrived(events: Iterable[Event], rules: Rules) -> tuple[dict[int, Event], set[str]]:
    """The event of each time; two that differ are wrong."""
    wrong: set[str] = set()
    arrived: dict[int, Event] = {}
    for event in events:
        if event.is_gone and rules.hard_deletes == "ignore":
            continue
        known = arrived.setdefault(event.time, event)
        if known != event and not (known.is_gone and event.is_gone):
            wrong.add("SOURCE_KEY_NOT_UNIQUE")
    return arrived, wrong


def _marks(versions: Sequence[Version]) -> dict[int, _Mark]:
    begins = {each.begin for each in versions}
    marks: dict[int, _Mark] = {}
    for each in versions:
        shown = (*each.tracked, *each.rest) if each.is_record else ()
        marks[each.begin] = _Mark(
            None if each.is_record else each.tracked, each.rest, is_new=False, shown=shown
        )
        if each.end is not None and each.end not in begins:
            marks[each.end] = _Mark(None, (), is_new=False)
    return marks


def _without_repeats(versions: Sequence[Version], marks: dict[int, _Mark]) -> dict[int, _Mark]:
    """The marks that say something new; neighbours that were stored with equal values stay."""
    pairs = pairwise(sorted(versions, key=lambda each: each.begin))
    repeats = {
        two.begin
        for one, two in pairs
        if one.end == two.begin
        and (one.tracked, one.is_record) == (two.tracked, two.is_record)
        and not marks[two.begin].is_new
    }
    kept: dict[int, _Mark] = {}
    previous: _Mark | None = None
    for time in sorted(marks):
        mark = marks[time]
        said_before = previous is not None and previous.says(mark)
        says_nothing = previous is None and mark.is_new and mark.tracked is None
        if says_nothing or (said_before and time not in repeats):
            previous = mark
            continue
        kept[time], previous = mark, mark
    return kept


def _versions(marks: dict[int, _Mark], rules: Rules) -> list[Version]:
    found: list[Version] = []
    times = sorted(marks)
    for number, time in enumerate(times):
        mark = marks[time]
        end = times[number + 1] if number + 1 < len(times) else None
        if mark.tracked is not None:
            found.append(Version(time, end, mark.tracked, mark.rest))
        elif mark.shown:
            width = len(mark.shown) - len(mark.rest)
            found.append(Version(time, end, mark.shown[:width], mark.rest, is_record=True))
        elif mark.is_new and rules.hard_deletes == "new_record":
            last = found[-1]
            found.append(Version(time, end, last.tracked, last.rest, is_record=True))
    return found
