"""What a connector tells of a table's history, so that marks are found in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A snapshot of a table's history, with its properties.

    ``order`` grows from each snapshot of a table to the next one, also behind a rollback that
    leaves it in the history. ``counts``: no later snapshot took it back. ``is_first``: it is
    certain that no snapshot came before it.
    """

    snapshot_id: int
    order: int
    properties: Mapping[str, str]
    counts: bool
    is_first: bool


@dataclass(frozen=True, slots=True)
class TableHistory:
    """The snapshots that lead to a pinned one, newest first, as far as they have not expired.

    ``identity`` is what tells the table, and its branch, from one made later under its name.
    ``left`` are snapshots that have not expired, and do not lead to the pinned one: the table was
    rolled back, or replaced.
    """

    identity: str
    entries: Iterable[HistoryEntry]
    left: frozenset[int] = frozenset()
