"""The range of keys of a data file of a table with a primary key. Driver only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The first and the last key of a file, both inclusive, as Python values in Paimon's order."""

    first: tuple[Any, ...]
    last: tuple[Any, ...]

    def overlaps(self, other: KeyRange) -> bool:
        """Whether a key can be in both ranges."""
        return self.first <= other.last and other.first <= self.last


def key_range(entry: Any) -> KeyRange:
    """The range of the file of a manifest entry."""
    return KeyRange(_values(entry.file.min_key), _values(entry.file.max_key))


def _values(row: Any) -> tuple[Any, ...]:
    return tuple(row.values)
