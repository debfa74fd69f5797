"""What the pages say of an expiry is what the job does, on random histories."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from random import Random

import pytest

from airflow_provider_merge.metadata.paimon.page_facts import PaimonPageFacts
from airflow_provider_merge.metadata.paimon.table import PaimonTable
from spark_jobs.contract.maintenance import CreateTagSpec, ExpireSnapshotsSpec
from spark_jobs.errors import JobError
from spark_jobs.spi.connector import Connector
from tests.support.paimon_tables import NAME, append, create

pytestmark = pytest.mark.slow

_SNAPSHOTS = 9
_HISTORIES = 60
_MINUTE = 60
_DAY = 86_400
# Options of schema-0, with values that matter for so many snapshots.
_OPTIONS = {
    "snapshot.num-retained.min": ["1", "3", "8", "20"],
    "snapshot.num-retained.max": ["2", "5", "50"],
    "snapshot.time-retained": ["30 min", "2 h", "10 d"],
}


def random_history(table: Path, chance: Random, now: float) -> None:
    """Other times, options and consumers; what the times say may differ from the store's."""
    schema = table / "schema" / "schema-0"
    document = json.loads(schema.read_text())
    chosen = {name: chance.choice(values) for name, values in _OPTIONS.items()}
    document["options"] = {n: v for n, v in chosen.items() if chance.random() < 0.6}
    schema.write_text(json.dumps(document))
    ages = sorted(
        (chance.choice([5, 45, 90, 600, 20_000]) for _ in range(_SNAPSHOTS)), reverse=True
    )
    for number, age in enumerate(ages, 1):
        path = table / "snapshot" / f"snapshot-{number}"
        snapshot = json.loads(path.read_text())
        stated = now - age * _MINUTE - chance.choice([0, 0, 0, 3 * _DAY])
        snapshot["timeMillis"] = int(stated * 1000)
        path.write_text(json.dumps(snapshot))
        os.utime(path, (now - age * _MINUTE,) * 2)
    consumers = table / "consumer"
    consumers.mkdir(exist_ok=True)
    for each in consumers.iterdir():
        each.unlink()
    for number in range(chance.choice([0, 0, 1, 3])):
        name = chance.choice(["reader", "merge-0a1b"])
        path = consumers / f"consumer-{name}{number}"
        path.write_text(json.dumps({"nextSnapshot": chance.randint(1, _SNAPSHOTS + 1)}))
        age = chance.choice([0, 6 * _DAY, 8 * _DAY])
        os.utime(path, (now - age,) * 2)


def of_job(connector: Connector) -> tuple[int, int | None] | str:
    """How many snapshots expire, and the first that stays; or why none does."""
    care = connector.maintenance
    assert care is not None
    try:
        report = care.expire_snapshots(NAME, ExpireSnapshotsSpec(), dry_run=True)
    except JobError as error:
        return error.message
    return report.snapshots, report.earliest_snapshot_id


def of_page(warehouse: Path, now: float) -> tuple[int, int | None] | str:
    facts = PaimonPageFacts(PaimonTable.find(str(warehouse), NAME, {}))
    try:
        expiry = facts.expiry(int(now * 1000))
    except JobError as error:
        return error.message
    return len(expiry.expiring), expiry.first_retained


def test_random_histories(connector: Connector, warehouse: Path) -> None:
    create(connector, {"id": "int"})
    for number in range(_SNAPSHOTS):
        append(connector, [{"id": number}], f"operation-{number}")
        connector.writes.release_guard(connector.metadata.load_table(NAME), f"operation-{number}")
    assert connector.maintenance is not None
    connector.maintenance.create_tag(NAME, CreateTagSpec("kept", 2))
    outcomes = set()
    for number in range(_HISTORIES):
        now = time.time()
        random_history(warehouse / "shop.db" / "orders", Random(number), now)

        expected = of_job(connector)

        assert of_page(warehouse, now) == expected, f"history {number}"
        outcomes.add(expected)
    assert len(outcomes) > 4, outcomes
