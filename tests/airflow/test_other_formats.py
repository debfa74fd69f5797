"""Sensors, triggers and hooks on a table of another format, whose snapshot ids have no order."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable
from typing import Any

import pytest

from airflow_provider_merge.hooks import catalog
from airflow_provider_merge.metadata.model import Snapshot
from airflow_provider_merge.metadata.snapshot_cache import SnapshotCache
from airflow_provider_merge.metadata.table_view import TableView
from airflow_provider_merge.sensors.base import TableSensor
from airflow_provider_merge.sensors.compaction import CompactionSensor
from airflow_provider_merge.sensors.freshness import FreshnessSensor
from airflow_provider_merge.sensors.partition import PartitionSensor
from airflow_provider_merge.sensors.snapshot import SnapshotSensor
from airflow_provider_merge.triggers.gates import SnapshotGate, gate_arguments
from airflow_provider_merge.triggers.polling import Poll
from airflow_provider_merge.triggers.table import TableTrigger
from airflow_provider_merge.triggers.watching import StreamPosition, new_snapshots
from tests.airflow.support import connection
from tests.support.listed_table import ListedHook, ListedTable

FAST = 0.05
TABLE: dict[str, Any] = {"task_id": "t", "table": "shop.orders", "catalog_conn_id": "other"}


@pytest.fixture
def orders(monkeypatch: pytest.MonkeyPatch) -> ListedTable:
    """A table with the snapshots 70, 20 and 50, in this order."""
    table = ListedTable()
    connection(monkeypatch, "other", conn_type="listed")
    monkeypatch.setitem(catalog._HOOKS, "listed", ListedHook)
    monkeypatch.setitem(ListedHook.tables, "other", table)
    for index, snapshot_id in enumerate((70, 20, 50)):
        table.add(snapshot_id, 1000 + index)
    return table


def found(sensor: TableSensor) -> int | None:
    """The snapshot that one poll finds; None: the gate is closed."""
    value = sensor.poke({})
    return value.xcom_value["snapshot_id"] if value else None


def ids(snapshots: Iterable[Snapshot]) -> list[int]:
    return [each.snapshot_id for each in snapshots]


@pytest.mark.parametrize(("after_id", "newest"), [(70, 50), (20, 50), (50, None), (60, None)])
def test_a_snapshot_after_an_id_is_behind_it_in_the_history(
    orders: ListedTable, after_id: int, newest: int | None
) -> None:
    assert found(SnapshotSensor(after_id=after_id, **TABLE)) == newest


def test_a_hook_reads_the_snapshots_behind_one_in_the_history(orders: ListedTable) -> None:
    assert ids(ListedHook("other").snapshots("shop.orders", since=70)) == [20, 50]


def test_what_is_behind_a_snapshot_that_is_gone_is_told_by_its_time(orders: ListedTable) -> None:
    orders.snapshots.pop(1)
    assert ids(TableView(orders).after(20, 1001)) == [50]


def test_a_snapshot_that_was_rolled_back_is_not_kept_in_mind(orders: ListedTable) -> None:
    cache = SnapshotCache()
    assert ids(TableView(orders, cache).newest_first()) == [50, 20, 70]
    orders.snapshots[1:] = []
    orders.add(20, 2000)
    assert [each.time_millis for each in TableView(orders, cache).newest_first()] == [2000, 1000]


def test_a_snapshot_that_keeps_all_rows_is_no_change(orders: ListedTable) -> None:
    now = int(time.time() * 1000)
    sensor = FreshnessSensor(max_age=3600, **TABLE)
    orders.add(10, now, keeps_rows=True)
    assert found(sensor) is None
    orders.add(5, now)
    assert found(sensor) == 5


def test_the_end_of_the_history_is_told_without_ids(orders: ListedTable) -> None:
    orders.is_complete = False
    sensor = FreshnessSensor(max_age=10**10, partition={"day": "sunday"}, **TABLE)
    assert found(sensor) is None
    assert "snapshots before 70 have expired" in sensor._seen


def test_a_partition_that_changed(orders: ListedTable) -> None:
    sensor = PartitionSensor(
        partition={"day": "tuesday"}, changed_since="1970-01-01T00:00:01.002", **TABLE
    )
    assert found(sensor) is None
    orders.add(3, 1003, "tuesday")
    assert found(sensor) == 3


def test_a_table_that_is_worth_compacting(orders: ListedTable) -> None:
    assert found(CompactionSensor(min_small_files=3, **TABLE)) == 50
    assert found(CompactionSensor(min_small_files=4, **TABLE)) is None


def test_a_trigger_waits_for_a_snapshot_behind_another(orders: ListedTable) -> None:
    gate = gate_arguments(SnapshotGate(after_id=50))

    async def story() -> Any:
        trigger = TableTrigger("shop.orders", "other", FAST, gate)
        async with contextlib.aclosing(trigger.run()) as events:
            waiting = asyncio.create_task(anext(events))
            await asyncio.sleep(4 * FAST)
            assert not waiting.done()
            orders.add(7, 1003)
            return (await asyncio.wait_for(waiting, 60)).payload

    event = asyncio.run(story())
    assert event["facts"]["snapshot_id"] == 7


def test_a_watcher_tells_snapshots_in_the_order_of_the_history(orders: ListedTable) -> None:
    async def story() -> list[int]:
        told = []
        poll = Poll("other", "shop.orders", FAST)
        async with contextlib.aclosing(new_snapshots(poll, StreamPosition(70, 1000))) as stream:
            async for payload, _ in stream:
                told.append(payload["snapshot_id"])
                if len(told) == 2:
                    orders.add(1, 1003)
                if len(told) == 3:
                    break
        return told

    assert asyncio.run(story()) == [20, 50, 1]
