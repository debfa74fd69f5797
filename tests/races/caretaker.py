"""A process that takes care of the table as fast as it can, until it is time.

Nothing of a race is a day old, so none of it may go, whatever the clock of this process says. What
each statement changed goes to a journal.
"""

from __future__ import annotations

import json
import random
import sys
import time
from typing import Any

from spark_jobs.contract.maintenance import (
    DeleteTagSpec,
    ExpireSnapshotsSpec,
    MaintenanceReport,
    RemoveOrphanFilesSpec,
)
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.engine.runtime.leftovers import leftovers_of
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.connector import Connector
from tests.races.journal import journal_of
from tests.races.writer import opened
from tests.support.faketime import mend_sleep
from tests.support.paimon_tables import NAME

_DAY = "1 d"


def cared(connector: Connector, chance: random.Random) -> MaintenanceReport:
    """Any statement that removes what is old; raises as it does."""
    care = connector.maintenance
    assert care is not None
    kind = chance.randrange(4)
    if kind == 0:
        expired = ExpireSnapshotsSpec(retain_min=1, older_than=_DAY)
        return care.expire_snapshots(NAME, expired, dry_run=False)
    if kind == 1:
        return care.delete_tag(NAME, DeleteTagSpec(None), dry_run=False)
    if kind == 2:
        left = leftovers_of(connector.storage, _DAY)
        left.remove()
        return left.added_to(MaintenanceReport())
    return care.remove_orphan_files(NAME, RemoveOrphanFilesSpec(_DAY), dry_run=False)


def run(plan: dict[str, Any]) -> None:
    """Random care for ``plan["seconds"]``, with a journal of it."""
    chance = random.Random(plan["seed"])
    catalog = CatalogSpec("paimon", plan["warehouse"], plan["options"])
    connector = opened(catalog, plan["credentials"], "own")
    until = time.monotonic() + plan["seconds"]
    with journal_of(plan) as note:
        while time.monotonic() < until:
            began = time.monotonic()
            try:
                report = cared(connector, chance)
            except JobError as error:
                if error.code is not ErrorCode.COMMIT_CONFLICT:
                    over = time.monotonic()
                    note(care=error.code.name, changed=str(error), began=began, over=over)
            else:
                note(care="done", changed=str(report) if report.changes else "")
            time.sleep(chance.uniform(0, 0.2))


if __name__ == "__main__":
    mend_sleep()
    run(json.loads(sys.stdin.read()))
