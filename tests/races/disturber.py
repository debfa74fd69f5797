"""A process that rolls the table back, or drops it and makes it anew, empty, until it is time.

It asks nobody: writers may be at work on what it takes away. When each disturbance began, and when
it was over, goes to a journal; commits that it may have taken are excused by the checker.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from typing import Any

from spark_jobs.contract.maintenance import RollbackSpec
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.connector import Connector
from spark_jobs.storage.files import remove_folder
from tests.races.journal import journal_of
from tests.races.writer import opened
from tests.support.faketime import mend_sleep
from tests.support.paimon_tables import NAME, create, snapshot_ids

COLUMNS = {"id": "bigint", "v": "bigint", "p": "int"}
_ATTEMPTS = 50
_PAUSE = (0.5, 2.0)
_MOST_BACK = 4
# What a rollback meets among writers, and on a server that they keep busy.
_TRIED_AGAIN = (ErrorCode.COMMIT_CONFLICT, ErrorCode.STORAGE_UNAVAILABLE)

Note = Callable[..., None]


def roll_back(connector: Connector, chance: random.Random, note: Note) -> None:
    """Drop a few snapshots; what is committed meanwhile goes, too."""
    ids = snapshot_ids(connector)
    if len(ids) <= _MOST_BACK:
        return
    target = ids[-1 - chance.randint(1, _MOST_BACK)]
    care = connector.maintenance
    assert care is not None
    began = time.monotonic()
    for _ in range(_ATTEMPTS):
        try:
            care.roll_back(NAME, RollbackSpec(target, force=True), dag_id="", dry_run=False)
            break
        except JobError as error:
            if error.code not in _TRIED_AGAIN:
                raise
    note(disturbed="rollback", to=target, began=began, over=time.monotonic())


def make_anew(connector: Connector, table: dict[str, Any], note: Note) -> None:
    """Drop the table as catalogs do, with all of its files, and create it."""
    place = connector.metadata.load_table(NAME).native.path
    began = time.monotonic()
    for attempt in range(_ATTEMPTS):
        try:
            remove_folder(connector.storage.filesystem, place)
            break
        except OSError:  # writers add files
            if attempt == _ATTEMPTS - 1:
                raise
    create(connector, COLUMNS, ["p"], table["options"], primary_key=table["key"])
    note(disturbed="recreation", to=0, began=began, over=time.monotonic())


def run(plan: dict[str, Any]) -> None:
    """Random disturbances for ``plan["seconds"]``, with a journal of them."""
    chance = random.Random(plan["seed"])
    catalog = CatalogSpec("paimon", plan["warehouse"], plan["options"])
    connector = opened(catalog, plan["credentials"], "own")
    until = time.monotonic() + plan["seconds"]
    with journal_of(plan) as note:
        while time.monotonic() < until:
            time.sleep(chance.uniform(*_PAUSE))
            if chance.randrange(3):
                roll_back(connector, chance, note)
            else:
                make_anew(connector, plan["table"], note)


if __name__ == "__main__":
    mend_sleep()
    run(json.loads(sys.stdin.read()))
