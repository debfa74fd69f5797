"""Whether what a stream reads of a table with a primary key is what happened to its rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from tests.support.judged_values import Row

Change = tuple[str, Row]


def wrong_changes(
    key: Sequence[str],
    before: Iterable[Row],
    changes: Iterable[Change],
    after: Iterable[Row],
    *,
    drops_unchanged: bool = False,
) -> list[str]:
    """What is wrong with ``changes``, which a stream reads while ``before`` becomes ``after``.

    A row that stays as it is may be there as -U and +U, unless ``drops_unchanged``. A key is in
    one partition only.
    """
    old, new = ({_key(key, row): row for row in rows} for rows in (before, after))
    found: dict[Any, list[Change]] = defaultdict(list)
    for kind, row in changes:
        found[_key(key, row)].append((kind, row))
    wrong = []
    for each in {**old, **new, **found}:
        expected = _changes(old.get(each), new.get(each))
        same = [] if each not in old else [("-U", old[each]), ("+U", old[each])]
        if found[each] == expected:
            continue
        if expected or drops_unchanged or found[each] != same:
            wrong.append(f"{each}: {found[each]} and not {expected}")
    return wrong


def _changes(old: Row | None, new: Row | None) -> list[Change]:
    if old == new:
        return []
    if old is None:
        return [("+I", new or {})]
    return [("-D", old)] if new is None else [("-U", old), ("+U", new)]


def _key(key: Sequence[str], row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in key)


class Replay:
    """The rows that a stream which reads everything has, by key; ``wrong``: what did not fit."""

    def __init__(self, key: Sequence[str]) -> None:
        self.key = key
        self.rows: dict[tuple[Any, ...], Row] = {}
        self.wrong: list[str] = []

    def read(self, changes: Iterable[Change]) -> None:
        """Take the next changes; each has to fit the rows before it."""
        for kind, row in changes:
            key = _key(self.key, row)
            old = self.rows.get(key)
            fits = old is None if kind == "+I" else kind == "+U" or old == row
            if not fits:
                self.wrong.append(f"{kind} {row} while the row is {old}")
            if kind in ("+I", "+U"):
                self.rows[key] = row
            else:
                self.rows.pop(key, None)
