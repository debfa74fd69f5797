"""A process that compacts the table as fast as it can, until it is time.

It has no Spark: the tasks of its jobs run in it. How each compaction ended goes to a journal.
"""

from __future__ import annotations

import json
import random
import sys
import time
import uuid
from typing import Any

from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.spi.connector import Connector
from tests.races.journal import journal_of
from tests.races.writer import opened
from tests.support.compaction_runs import compact, in_groups_of
from tests.support.faketime import mend_sleep


def random_spec(chance: random.Random) -> CompactSpec:
    """Any statement that has something to do most of the time."""
    return CompactSpec(
        mode=chance.choice(("minor", "full")),
        min_files=2,
        small_file_share=1.0,
        deleted_share=0.0,
        sorted_runs=2,
        max_partitions=chance.choice((None, 1)),
    )


def run(plan: dict[str, Any]) -> None:
    """Random compactions for ``plan["seconds"]``, with a journal of them."""
    chance = random.Random(plan["seed"])
    catalog = CatalogSpec("paimon", plan["warehouse"], plan["options"])
    connector: Connector = opened(catalog, plan["credentials"], "own")
    until = time.monotonic() + plan["seconds"]
    with journal_of(plan) as note:
        while time.monotonic() < until:
            operation_id = f"compaction-{uuid.uuid4().hex}"
            note(compaction=operation_id)
            grouped = in_groups_of(connector, chance.choice((1, 100)))
            result = compact(grouped, catalog, random_spec(chance), operation_id=operation_id)
            failed = (
                {"failed": result.error.code, "text": str(result.error)} if result.error else {}
            )
            note(compaction=operation_id, status=result.status, **failed)
            time.sleep(chance.uniform(0, 0.2))


if __name__ == "__main__":
    mend_sleep()
    run(json.loads(sys.stdin.read()))
