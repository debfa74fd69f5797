"""Sensors, triggers and watchers on Iceberg tables, whose snapshot ids are random and large."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime
from typing import Any

import pytest
from pyiceberg.catalog import Catalog

from airflow_provider_merge.hooks.iceberg import IcebergHook
from airflow_provider_merge.metadata.iceberg.snapshots import IcebergHistory
from airflow_provider_merge.metadata.snapshot_cache import SnapshotCache
from airflow_provider_merge.metadata.table_view import TableView
from airflow_provider_merge.sensors.freshness import FreshnessSensor
from airflow_provider_merge.sensors.partition import PartitionSensor
from airflow_provider_merge.sensors.snapshot import SnapshotSensor
from airflow_provider_merge.sensors.tag import TagSensor
from airflow_provider_merge.triggers.compaction_gate import CompactionGate
from airflow_provider_merge.triggers.gates import (
    FreshnessGate,
    PartitionGate,
    SnapshotGate,
    TagGate,
    gate_arguments,
)
from airflow_provider_merge.triggers.polling import Poll
from airflow_provider_merge.triggers.table import TableTrigger
from airflow_provider_merge.triggers.watching import StreamPosition, new_snapshots
from spark_jobs.errors import NotSupportedError
from tests.airflow.test_iceberg_tables import DAY
from tests.support.iceberg_tables import IcebergTable

FAST = 0.05
CONNECTION = "iceberg_default"
TABLE: dict[str, Any] = {"task_id": "t", "table": "shop.orders", "catalog_conn_id": CONNECTION}
# What a browser makes another number of.
ROUNDED = 2**53


@pytest.fixture
def orders(iceberg_catalog: Catalog) -> IcebergTable:
    table = IcebergTable.create(iceberg_catalog)
    for rows in (5, 3, 7):
        table.append(DAY, "Oslo", rows=rows)
    return table


def found(sensor: Any) -> Any:
    """The facts that one poll finds; None: the gate is closed."""
    value = sensor.poke({})
    return value.xcom_value if value else None


def view(cache: SnapshotCache | None = None) -> TableView:
    return TableView(IcebergHook().table("shop.orders"), cache)


def ids(table: IcebergTable) -> list[int]:
    return [each.snapshot_id for each in table.table.metadata.snapshots]


def test_a_snapshot_behind_another(orders: IcebergTable) -> None:
    first, _, last = ids(orders)
    assert found(SnapshotSensor(after_id=first, **TABLE))["snapshot_id"] == last
    assert found(SnapshotSensor(after_id=str(last), **TABLE)) is None
    assert found(SnapshotSensor(after_id=0, statements="append", **TABLE))["snapshot_id"] == last
    assert found(SnapshotSensor(after_id=0, statements="replace", **TABLE)) is None


def test_partitions(orders: IcebergTable) -> None:
    day = {"ts_day": "2026-01-31"}
    (partition,) = found(PartitionSensor(partition=day, min_rows=15, **TABLE))["partitions"]
    assert (partition["name"], partition["rows"]) == ("ts_day=2026-01-31/city=Oslo", 15)
    assert found(PartitionSensor(partition=day, min_rows=16, **TABLE)) is None
    both = [day, {"ts_day": "2026-02-01"}]
    assert found(PartitionSensor(partition=both, **TABLE)) is None
    orders.append(DAY + 1, "Rome")
    assert len(found(PartitionSensor(partition=both, **TABLE))["partitions"]) == 2
    orders.mark(DAY, "Oslo", rows=1, of=None)
    with pytest.raises(NotSupportedError, match="metadata does not tell the number of rows"):
        PartitionGate((day,), 1).observe(view())


def test_a_partition_that_changed(orders: IcebergTable) -> None:
    moment = orders.table.metadata.last_updated_ms / 1000 + 0.001
    since: dict[str, Any] = {"changed_since": datetime.fromtimestamp(moment, UTC), **TABLE}
    sensor = PartitionSensor(partition={"city": "Rome"}, **since)
    orders.append(DAY, "Oslo")
    assert found(sensor) is None
    orders.append(DAY, "Rome")
    assert found(sensor)["partitions"][0]["name"] == "ts_day=2026-01-31/city=Rome"


def test_freshness_is_of_rows(orders: IcebergTable) -> None:
    changed = orders.head
    orders.compact()
    sensor = FreshnessSensor(max_age=3600, **TABLE)
    assert found(sensor)["snapshot_id"] == changed
    assert found(FreshnessSensor(max_age=3600, partition={"city": "Rome"}, **TABLE)) is None
    oslo = FreshnessSensor(max_age=3600, partition={"city": "Oslo"}, **TABLE)
    assert found(oslo)["snapshot_id"] == changed


def test_tags(orders: IcebergTable) -> None:
    sensor = TagSensor(tag="eod", **TABLE)
    assert found(sensor) is None
    orders.table.manage_snapshots().create_tag(ids(orders)[0], "eod").commit()
    assert found(sensor)["snapshot_id"] == ids(orders)[0]


def test_a_branch_has_gates_of_its_own(orders: IcebergTable) -> None:
    orders.table.manage_snapshots().create_branch(orders.head, "audit").commit()
    audit = IcebergTable(orders.catalog, orders.identifier, "audit")
    audit.append(DAY, "Bonn", rows=9)
    bonn: dict[str, Any] = {**TABLE, "partition": {"city": "Bonn"}}
    assert found(PartitionSensor(**bonn)) is None
    bonn["table"] = "shop.`orders$branch_audit`"
    assert found(PartitionSensor(**bonn))["snapshot_id"] == audit.head


def test_small_files_that_a_compaction_would_join(orders: IcebergTable) -> None:
    waiting = CompactionGate(min_small_files=4).observe(view())
    assert waiting.facts is None
    assert "expected at least 4 joinable small files" in waiting.seen

    orders.append(DAY, "Oslo", rows=2)

    met = CompactionGate(min_small_files=4).observe(view())
    assert met.facts is not None
    assert met.facts["partitions_found"] == 1
    assert "has 4 joinable small files" in met.seen


@pytest.mark.parametrize(
    "gate",
    [
        SnapshotGate(after_id=1, after_millis=1),
        PartitionGate(({"city": "Oslo"},), 15),
        FreshnessGate(3600),
        TagGate("eod"),
    ],
)
def test_a_trigger_waits_for_any_gate(orders: IcebergTable, gate: Any) -> None:
    orders.table.manage_snapshots().create_tag(orders.head, "eod").commit()

    async def story() -> Any:
        trigger = TableTrigger("shop.orders", CONNECTION, FAST, gate_arguments(gate))
        async with contextlib.aclosing(trigger.run()) as events:
            return (await asyncio.wait_for(anext(events), 60)).payload

    assert asyncio.run(story())["facts"]["snapshot_id"] == orders.head


def test_a_watcher_tells_each_snapshot_once(orders: IcebergTable) -> None:
    start = StreamPosition.of(IcebergHook().snapshots("shop.orders")[0])

    async def story() -> list[int]:
        told = []
        poll = Poll(CONNECTION, "shop.orders", FAST)
        async with contextlib.aclosing(new_snapshots(poll, start)) as stream:
            async for payload, _ in stream:
                told.append(payload["snapshot_id"])
                if len(told) == 2:
                    orders.compact()
                if len(told) == 3:
                    break
        return told

    assert asyncio.run(story()) == ids(orders)[1:]


def expire(table: IcebergTable, count: int) -> list[int]:
    """Let the oldest snapshots expire, as pyiceberg does."""
    gone = ids(table)[:count]
    table.table.maintenance.expire_snapshots().by_ids(gone).commit()
    return gone


def test_what_a_watcher_has_missed_is_told(
    orders: IcebergTable, caplog: pytest.LogCaptureFixture
) -> None:
    start = StreamPosition.of(IcebergHook().snapshots("shop.orders")[0])
    gone = expire(orders, 2)

    async def story() -> int:
        poll = Poll(CONNECTION, "shop.orders", FAST)
        async with contextlib.aclosing(new_snapshots(poll, start)) as stream:
            payload, _ = await anext(stream)
            return int(payload["snapshot_id"])

    assert asyncio.run(story()) == orders.head
    assert f"snapshot {gone[0]} has expired, and others may have" in caplog.text


def test_a_sensor_tells_that_its_snapshot_is_gone(orders: IcebergTable) -> None:
    (gone,) = expire(orders, 1)
    sensor = SnapshotSensor(after_id=gone, **TABLE)
    assert found(sensor) is None
    assert f"history does not know snapshot {gone}" in sensor._seen


def test_history_is_not_complete_once_a_snapshot_expired(orders: IcebergTable) -> None:
    assert view().history.is_complete
    expire(orders, 1)
    assert not view().history.is_complete
    # Java keeps the id of the parent, which tells what came next.
    kept = IcebergHistory((5, 3), parent=9, is_complete=False)
    assert kept.after(9) == (5, 3)
    assert kept.after(3) == ()
    assert kept.after(7) is None


def test_a_snapshot_that_was_rolled_back(orders: IcebergTable) -> None:
    cache = SnapshotCache()
    first, second, third = ids(orders)
    newest_first = [each.snapshot_id for each in view(cache).newest_first()]
    assert newest_first == [third, second, first]
    orders.table.manage_snapshots().rollback_to_snapshot(first).commit()
    again = orders.append(DAY, "Rome")
    assert [each.snapshot_id for each in view(cache).newest_first()] == [again, first]
    assert IcebergHook().snapshot("shop.orders", third) is None


@pytest.mark.slow
def test_large_ids_survive_xcom_and_parameters(
    airflow_db: None, orders: IcebergTable, dag_file: Any
) -> None:
    while not ids(orders)[0] > ROUNDED < orders.append(DAY, "Oslo"):
        pass
    first = ids(orders)[0]
    # A parameter that is text, as a form has to pass it on.
    run = dag_file(
        """
from airflow_provider_merge.sensors.snapshot import SnapshotSensor
same = {"table": "shop.orders", "catalog_conn_id": "iceberg_default", "poke_interval": 0.2}
first = SnapshotSensor(task_id="first", after_id="{{ params.after }}", timeout=5, **same)
again = "{{ ti.xcom_pull(task_ids='first')['snapshot_id'] }}"
none = SnapshotSensor(task_id="none", after_id=again, timeout=1, soft_fail=True, **same)
first >> none
""",
        arguments=f"params={{'after': '{first}'}}",
    ).run()
    states = {ti.task_id: ti for ti in run.get_task_instances()}
    assert states["first"].xcom_pull(task_ids="first")["snapshot_id"] == orders.head
    assert states["none"].state == "skipped"
