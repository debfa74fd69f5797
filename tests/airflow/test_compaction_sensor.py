"""When a table is worth compacting: the sensor, its trigger and the hook's facts.

Tables with a primary key, deletion vectors and real files: tests/connectors/paimon.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_merge.hooks.paimon import PaimonHook
from airflow_provider_merge.metadata.paimon.manifests import DataFile, Manifests
from airflow_provider_merge.metadata.paimon.snapshots import PaimonSnapshot
from airflow_provider_merge.sensors.compaction import CompactionSensor
from airflow_provider_merge.triggers.compaction_gate import MOST_LISTED, CompactionGate
from airflow_provider_merge.triggers.gates import gate_arguments
from airflow_provider_merge.triggers.table import TableTrigger
from spark_jobs.errors import NotSupportedError
from tests.support.paimon_metadata import TableFiles

JANUARY = [f"2026-01-{day:02}" for day in range(1, 32)]


@pytest.fixture
def orders(warehouse: Path) -> TableFiles:
    """Files have 100 bytes each."""
    return TableFiles(warehouse).create(**{"target-file-size": "1 kb"})


def sensor(**parameters: Any) -> CompactionSensor:
    return CompactionSensor(task_id="t", table="shop.orders", **parameters)


def found(waiting: CompactionSensor) -> Any:
    """What one poll finds; None: the gate is closed."""
    context: Any = {"ti": SimpleNamespace(dag_id="d", task_id="t", map_index=-1)}
    value = waiting.poke(context)
    return value.xcom_value if value else None


def test_a_partition_with_so_many_small_files(orders: TableFiles) -> None:
    waiting = sensor(min_small_files=3)
    assert found(waiting) is None
    assert waiting._seen == "the table has no snapshot, expected at least 3 joinable small files"
    orders.add({"2026-01-30": 1, "2026-01-31": 1})
    orders.add({"2026-01-31": 1})
    assert found(waiting) is None
    worst = "partition day=2026-01-31 has 2 joinable small files in a bucket"
    expected = "expected at least 3 joinable small files; newest: snapshot 2 (APPEND"
    assert waiting._seen.startswith(f"{worst}, {expected}")
    orders.add({"2026-01-31": 1})
    facts = found(waiting)
    assert (facts["table"], facts["snapshot_id"], facts["partitions_found"]) == (
        "shop.orders",
        3,
        1,
    )
    assert facts["partitions"] == [
        {
            "name": "day=2026-01-31",
            "values": {"day": "2026-01-31"},
            "files": 3,
            "bytes": 300,
            "small_files": 3,
            "small_bytes": 300,
            "joinable_files": 3,
            "marked_share": 0.0,
            "sorted_runs": 0,
            "level_0_files": 0,
            "pending_files": 0,
        }
    ]
    assert waiting._seen.endswith(
        ": partition day=2026-01-31 has 3 joinable small files in a bucket"
    )
    json.dumps(facts)


def test_only_partitions_that_are_asked_for(orders: TableFiles) -> None:
    for _ in range(2):
        orders.add({"2026-01-31": 1})
    assert found(sensor(min_small_files=2, partition={"day": "2026-01-30"})) is None
    assert found(sensor(min_small_files="2", partition={"DAY": "2026-01-31"})) is not None


@pytest.mark.parametrize(
    ("counted", "is_open"),
    [
        ({}, True),
        ({"small_file_share": 0.09}, False),
        ({"small_file_share": "0.1"}, True),
        ({"target_file_size": "100 b"}, False),
        ({"target_file_size": "199 b", "small_file_share": 1.0}, False),
        ({"target_file_size": "200 b", "small_file_share": 1.0}, True),
    ],
    ids=str,
)
def test_what_is_small(orders: TableFiles, counted: dict[str, Any], is_open: bool) -> None:
    for _ in range(2):
        orders.add()
    assert (found(sensor(min_small_files=2, **counted)) is not None) == is_open
    counted = {name: float(v) if name == "small_file_share" else v for name, v in counted.items()}
    (facts,) = PaimonHook().compaction_facts("shop.orders", **counted)
    assert (facts.joinable_files >= 2) == is_open


def test_the_worst_of_many_partitions_come_first(orders: TableFiles) -> None:
    orders.add(dict.fromkeys(JANUARY, 1))
    orders.add(dict.fromkeys(JANUARY, 1))
    orders.add({"2026-01-17": 1})
    waiting = sensor(min_small_files=2)
    facts = found(waiting)
    assert (facts["partitions_found"], len(facts["partitions"])) == (31, 31)
    assert facts["partitions"][0]["name"] == "day=2026-01-17"
    assert waiting._seen.endswith("; and 26 more")


def test_no_more_are_listed_than_an_xcom_holds(orders: TableFiles) -> None:
    days = [f"{year}-{day[5:]}" for year in range(2020, 2024) for day in JANUARY]
    for _ in range(2):
        orders.add(dict.fromkeys(days, 1))
    facts = found(sensor(min_small_files=2))
    assert (facts["partitions_found"], len(facts["partitions"])) == (124, MOST_LISTED)


def make_keyed(orders: TableFiles) -> None:
    schema = orders.folder / "schema" / "schema-0"
    document = {**json.loads(schema.read_text()), "primaryKeys": ["day", "id"]}
    schema.write_text(json.dumps(document))


def test_a_bucket_with_so_many_sorted_runs(orders: TableFiles) -> None:
    orders.add()
    assert found(sensor(min_sorted_runs=2)) is None
    make_keyed(orders)
    orders.add()
    waiting = sensor(min_sorted_runs=2, min_small_files=99)
    assert found(waiting)["partitions"][0]["sorted_runs"] == 2
    told = "has 0 joinable small files and 2 sorted runs in a bucket"
    assert waiting._seen.endswith(told)


def test_the_table_s_newest_options_count(orders: TableFiles) -> None:
    for _ in range(2):
        orders.add()
    waiting = sensor(min_small_files=2)
    schema = json.loads((orders.folder / "schema" / "schema-0").read_text())
    for number, size in ((1, "100 b"), (2, "x")):
        changed = {**schema, "id": number, "options": {"target-file-size": size}}
        (orders.folder / "schema" / f"schema-{number}").write_text(json.dumps(changed))
        if number == 1:
            assert found(waiting) is None
    with pytest.raises(AirflowFailException, match="Option target-file-size: 'x' is not a size"):
        found(waiting)


def test_a_table_that_is_not_compacted_here(warehouse: Path) -> None:
    tracked = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    TableFiles(warehouse).create(**tracked).add()
    told = "(?s)data-evolution.enabled.*Paimon's own engines"
    with pytest.raises(AirflowFailException, match=told):
        found(sensor(min_small_files=2))
    with pytest.raises(NotSupportedError, match=told):
        PaimonHook().compaction_facts("shop.orders")


def test_a_sensor_that_polls_reads_manifests_once_for_each_snapshot(
    orders: TableFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: Counter[int] = Counter()
    live_files = Manifests.live_files

    def counting(manifests: Manifests, snapshot: PaimonSnapshot, *arguments: Any) -> list[DataFile]:
        reads[snapshot.snapshot_id] += 1
        return live_files(manifests, snapshot, *arguments)

    monkeypatch.setattr(Manifests, "live_files", counting)
    waiting = sensor(min_small_files=3)
    for _ in range(2):
        orders.add()
        assert [found(waiting) for _ in range(3)] == [None] * 3
    orders.roll_back(1)
    orders.add(time_millis=7)
    orders.add()
    assert found(waiting) is not None
    assert reads == {1: 1, 2: 1, 3: 1}


def test_a_rolled_back_snapshot_of_the_same_id_is_counted_anew(orders: TableFiles) -> None:
    waiting = sensor(min_small_files=2)
    orders.add()
    orders.add({"2026-01-30": 1})
    assert found(waiting) is None
    orders.roll_back(1)
    orders.add(time_millis=7)
    assert found(waiting)["snapshot_id"] == 2


def test_a_trigger_waits_for_it(orders: TableFiles) -> None:
    orders.add()

    async def story() -> Any:
        gate = gate_arguments(CompactionGate(min_small_files=2))
        trigger = TableTrigger("shop.orders", poll_interval=0.05, gate=gate)
        async with contextlib.aclosing(trigger.run()) as events:
            waiting = asyncio.create_task(anext(events))
            await asyncio.sleep(0.2)
            assert not waiting.done()
            orders.add()
            return (await asyncio.wait_for(waiting, 60)).payload

    event = asyncio.run(story())
    assert event["status"] == "open"
    assert event["facts"]["partitions"][0]["small_files"] == 2


def test_facts_of_the_hook(orders: TableFiles) -> None:
    orders.add({"2026-01-30": 3, "2026-01-31": 4})
    first, second = PaimonHook().compaction_facts("shop.orders")
    assert (first.name, first.files, first.rows, first.marked_rows) == ("day=2026-01-30", 1, 3, 0)
    assert PaimonHook().compaction_facts("shop.orders", {"day": "2026-01-31"}) == [second]
