"""What racing writers do: statements that depend on the rows they find, and their meaning.

The meaning is written down here in Python, over plain rows; ``tests.races.writer`` makes change
rows of the same statements. An UPDATE is not commutative and keys are few, so that a lost, doubled
or reordered commit shows in the values.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

PARTITIONS = 4
KEYS = 40
MODULUS = 1_000_003
_APPENDED = 1_000_000

Row = tuple[int, int, int]


@dataclass(frozen=True)
class Statement:
    """``kind``: merge, delete, append or compact; in one partition ``p``.

    ``ids`` are keys to merge (with ``number`` as the source's value) or new keys to append; a
    delete takes the rows whose id leaves ``number`` when divided by 5.
    """

    kind: str
    p: int
    ids: tuple[int, ...] = ()
    number: int = 0

    def updated(self, value: int) -> int:
        """What a matched row's value becomes."""
        return (3 * value + self.number) % MODULUS

    def deletes(self, row_id: int) -> bool:
        """Whether it deletes a row of its partition."""
        return self.kind == "delete" and row_id % 5 == self.number

    def new_rows(self, found: Sequence[int]) -> list[Row]:
        """The rows that it inserts where the ids ``found`` are there already."""
        if self.kind == "append":
            return [(each, self.number, self.p) for each in self.ids]
        known = set(found)
        ids = self.ids if self.kind == "merge" else ()
        return [(each, self.number, self.p) for each in ids if each not in known]

    def applied(self, rows: Sequence[Row]) -> list[Row]:
        """The table's rows afterwards."""
        kept = []
        for row in rows:
            row_id, value, p = row
            if p != self.p:
                kept.append(row)
            elif not self.deletes(row_id):
                matched = self.kind == "merge" and row_id in self.ids
                kept.append((row_id, self.updated(value) if matched else value, p))
        found = [row_id for row_id, _, p in rows if p == self.p]
        return [*kept, *self.new_rows(found)]


def random_statement(chance: random.Random, partitions: int = PARTITIONS) -> Statement:
    """Any statement on one of so many partitions; every appended key is new."""
    kind = chance.choices(["merge", "delete", "append", "compact"], [6, 2, 2, 2])[0]
    p = chance.randrange(partitions)
    if kind == "merge":
        return Statement(kind, p, tuple(chance.sample(range(KEYS), 4)), chance.randrange(1000))
    if kind == "append":
        return random_append(chance, partitions)
    return Statement(kind, p, number=chance.randrange(5))


def random_append(chance: random.Random, partitions: int) -> Statement:
    """A statement that adds a row with a new key to one of so many partitions."""
    return Statement(
        "append", chance.randrange(partitions), (_APPENDED + chance.getrandbits(40),), 1
    )


def as_rows(found: Sequence[dict[str, Any]]) -> list[Row]:
    """Rows of the table as they are compared, sorted."""
    return sorted((row["id"], row["v"], row["p"]) for row in found)
