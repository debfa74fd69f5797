"""A process that rolls an Iceberg table back, or drops it and makes it anew, until it is time.

It asks nobody: writers may be at work on what it takes away. When each disturbance began, and when
it was over, goes to a journal; commits that a new table may have taken are excused by the checker.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.snapshots import ancestors_of

from tests.races.iceberg_table import RaceCatalog, made_anew
from tests.races.journal import journal_of
from tests.races.racer import take_part
from tests.support.faketime import mend_sleep
from tests.support.paimon_tables import NAME

_PAUSE = (0.5, 2.0)
_MOST_BACK = 4
_ATTEMPTS = 20


def roll_back(catalog: Any, chance: random.Random) -> None:
    """Let the table be what it was a few commits ago."""
    for _ in range(_ATTEMPTS):
        table = catalog.load_table((NAME.database, NAME.table))
        line = list(ancestors_of(table.current_snapshot(), table.metadata))
        if len(line) <= _MOST_BACK:
            return
        target = line[chance.randint(1, _MOST_BACK)].snapshot_id
        try:
            table.manage_snapshots().rollback_to_snapshot(target).commit()
        except CommitFailedException:
            continue
        return


def race(catalog: Any, plan: dict[str, Any]) -> None:
    """Random disturbances for ``plan["seconds"]`` if it is ``disturbed``, with a journal."""
    chance, until = random.Random(plan["seed"]), time.monotonic() + plan["seconds"]
    with journal_of(plan) as note:
        while plan["disturbed"] and time.monotonic() < until:
            time.sleep(chance.uniform(*_PAUSE))
            is_rollback = bool(chance.randrange(3))
            kind = "rollback" if is_rollback else "recreation"
            note(disturbed=kind, began=time.monotonic())
            if is_rollback:
                roll_back(catalog, chance)
            else:
                made_anew(catalog, marks=plan["marks"])
            note(disturbed=kind, over=time.monotonic())


@contextmanager
def opened(plan: dict[str, Any]) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Its races on the table of a catalog."""
    yield partial(race, RaceCatalog.of(plan).opened())


if __name__ == "__main__":
    mend_sleep()
    take_part(opened)
