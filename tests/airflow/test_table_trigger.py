"""The trigger: gates in an event loop, watched snapshots, shared polls, where a watcher goes on."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_3_PLUS

from airflow_provider_merge.metadata.paimon.snapshots import PaimonSnapshot
from airflow_provider_merge.metadata.paimon.table import PaimonTable
from airflow_provider_merge.triggers.compaction_gate import CompactionGate
from airflow_provider_merge.triggers.gates import (
    FreshnessGate,
    Gate,
    PartitionGate,
    SnapshotGate,
    TagGate,
    gate_arguments,
    gate_of,
)
from airflow_provider_merge.triggers.polling import Poll
from airflow_provider_merge.triggers.table import TableTrigger
from airflow_provider_merge.triggers.watching import StreamPosition, new_snapshots
from spark_jobs.contract.request import TableName
from spark_jobs.errors import RequestError
from tests.airflow.support import connection
from tests.support.paimon_metadata import TableFiles

FAST = 0.05
AFTER_1 = gate_arguments(SnapshotGate(after_id=1))


@pytest.fixture
def orders(warehouse: Path) -> TableFiles:
    return TableFiles(warehouse).create()


async def first(trigger: TableTrigger) -> Any:
    """The payload of the trigger's first event."""
    async with contextlib.aclosing(trigger.run()) as events:
        async for event in events:
            return event.payload
    return None


async def told(
    poll: Poll, start: StreamPosition | None, count: int, then: Callable[..., Any] = lambda: None
) -> list[int]:
    """The ids of so many snapshots after a position; ``then`` runs once it is under way."""
    found = []
    async with contextlib.aclosing(new_snapshots(poll, start)) as snapshots:
        async for payload, position in snapshots:
            if not payload:
                then()
                continue
            assert payload["snapshot_id"] == position.snapshot_id
            found.append(position.snapshot_id)
            if len(found) == count:
                break
    return found


@pytest.mark.parametrize(
    "gate",
    [
        SnapshotGate(3, 4, ("merge",), {"a": "b"}),
        PartitionGate(({"day": "2026-01-31"}, {"day": None}), 2, 5),
        TagGate("t"),
        FreshnessGate(1.5, {"day": "2026-01-31"}),
        CompactionGate(5, 7, 0.2, {"day": None}, 0.5, "1 mb", include_pending=True),
    ],
)
def test_what_is_serialised_comes_back(
    gate: Gate,
) -> None:
    trigger = TableTrigger(
        "shop.orders", gate=gate_arguments(gate), deadline=5.0, seen="snapshot 7"
    )
    path, arguments = trigger.serialize()
    assert path == "airflow_provider_merge.triggers.table.TableTrigger"
    again = TableTrigger(**arguments)
    assert again.serialize() == (path, arguments)
    assert again.gate is not None
    assert gate_of(again.gate) == gate


def test_a_gate_opens(orders: TableFiles) -> None:
    orders.add()

    async def story() -> Any:
        trigger = TableTrigger("shop.orders", poll_interval=FAST, gate=AFTER_1)
        waiting = asyncio.create_task(first(trigger))
        await asyncio.sleep(4 * FAST)
        assert not waiting.done()
        orders.add()
        return await asyncio.wait_for(waiting, 300)

    event = asyncio.run(story())
    assert event["status"] == "open"
    assert event["facts"]["snapshot_id"] == 2
    assert event["seen"].startswith("snapshot 2 (APPEND")


def at_each_poll(monkeypatch: pytest.MonkeyPatch, act: Callable[..., Any]) -> None:
    """``act`` is called with the table whenever the newest snapshot is looked up."""
    latest = PaimonTable.latest

    def acting(table: PaimonTable) -> PaimonSnapshot | None:
        act(table)
        return latest(table)

    monkeypatch.setattr(PaimonTable, "latest", acting)


def test_what_a_gate_waits_for_is_logged_once(
    orders: TableFiles, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO")
    gate = gate_arguments(PartitionGate(({"day": "2026-01-31"},), min_rows=3))
    waits = "day=2026-01-31 has 2 rows, expected at least 3"
    polls: list[object] = []
    at_each_poll(monkeypatch, polls.append)
    orders.add({"2026-01-31": 2})

    async def story() -> Any:
        trigger = TableTrigger("shop.orders", poll_interval=FAST, gate=gate)
        waiting = asyncio.create_task(first(trigger))
        while waits not in caplog.text:
            await asyncio.sleep(FAST)
        for _ in range(3):
            polled = len(polls)
            while len(polls) == polled:
                await asyncio.sleep(FAST)
        orders.add({"2026-01-31": 1})
        return await asyncio.wait_for(waiting, 300)

    assert asyncio.run(asyncio.wait_for(story(), 300))["status"] == "open"
    assert caplog.text.count(waits) == 1


def test_a_gate_is_given_up(orders: TableFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    orders.add()
    trigger = TableTrigger(
        "shop.orders", poll_interval=FAST, gate=AFTER_1, deadline=time.time() + 3600
    )
    at_each_poll(monkeypatch, lambda _: setattr(trigger, "deadline", 0.0))
    event = asyncio.run(first(trigger))
    assert event["status"] == "timeout"
    assert event["seen"].startswith("newest: snapshot 1 (APPEND")


def test_a_gate_that_was_never_polled(orders: TableFiles) -> None:
    trigger = TableTrigger("shop.orders", gate=AFTER_1, deadline=0.0, seen="newest: snapshot 1")
    arguments = trigger.serialize()[1]
    assert asyncio.run(first(TableTrigger(**arguments)))["seen"] == "newest: snapshot 1"
    del arguments["seen"]  # a trigger that was stored without it
    assert asyncio.run(first(TableTrigger(**arguments)))["seen"] == "nothing yet"


def test_an_error_ends_the_wait(warehouse: Path) -> None:
    trigger = TableTrigger("shop.nothing", poll_interval=FAST, gate=AFTER_1)
    event = asyncio.run(first(trigger))
    assert event["status"] == "error"
    assert event["error"]["code"] == "TABLE_NOT_FOUND"


def test_a_connection_that_is_changed_while_a_gate_waits(
    orders: TableFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.add()
    looked, moved = threading.Event(), tmp_path / "moved"
    at_each_poll(monkeypatch, lambda _: looked.set())

    async def story() -> Any:
        trigger = TableTrigger("shop.orders", poll_interval=FAST, gate=AFTER_1)
        waiting = asyncio.create_task(first(trigger))
        assert await asyncio.to_thread(looked.wait, 60)
        extra = {"warehouse": str(moved)}
        connection(monkeypatch, "paimon_default", conn_type="paimon", extra=extra)
        orders.warehouse.rename(moved)
        orders.warehouse = moved
        await asyncio.sleep(4 * FAST)
        orders.add()
        return await asyncio.wait_for(waiting, 60)

    assert asyncio.run(story())["status"] == "open"


def test_a_store_that_is_away_for_a_while(orders: TableFiles) -> None:
    orders.add()
    folder = orders.folder / "snapshot"
    folder.rename(folder.with_name("away"))
    folder.symlink_to(folder)

    async def story() -> Any:
        gate = gate_arguments(SnapshotGate())
        waiting = asyncio.create_task(
            first(TableTrigger("shop.orders", "paimon_default", FAST, gate))
        )
        await asyncio.sleep(4 * FAST)
        assert not waiting.done()
        folder.unlink()
        folder.with_name("away").rename(folder)
        return await asyncio.wait_for(waiting, 300)

    assert asyncio.run(story())["status"] == "open"


def test_triggers_of_a_table_share_their_polls(
    orders: TableFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    triggers = [
        TableTrigger("shop.orders", poll_interval=FAST, gate=AFTER_1, deadline=time.time() + 3600)
        for _ in range(50)
    ]
    polls: Counter[str] = Counter()

    def counted(table: PaimonTable) -> None:
        polls[table.location] += 1
        if polls[table.location] == 3:
            for trigger in triggers:
                trigger.deadline = 0.0

    at_each_poll(monkeypatch, counted)

    async def story() -> list[Any]:
        return await asyncio.gather(*map(first, triggers))

    events = asyncio.run(story())
    assert [event["status"] for event in events] == ["timeout"] * 50
    # The third poll is the last one, or the next while triggers are told; no poll for each trigger.
    assert 3 <= sum(polls.values()) <= 6


def test_a_store_that_hangs_holds_up_no_other_connection(
    orders: TableFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection(monkeypatch, "dead", conn_type="paimon", extra={"warehouse": str(tmp_path)})
    names = [f"t{number}" for number in range(20)]
    for name in names:
        TableFiles(tmp_path, name).create()
    orders.add()
    hanging, over = threading.Semaphore(0), threading.Event()
    latest = PaimonTable.latest

    def hangs(table: PaimonTable) -> PaimonSnapshot | None:
        if table.name.table in names:
            hanging.release()
            over.wait(60)
        return latest(table)

    monkeypatch.setattr(PaimonTable, "latest", hangs)
    gate = gate_arguments(SnapshotGate())

    async def story() -> Any:
        waiting = [
            asyncio.create_task(first(TableTrigger(f"shop.{name}", "dead", FAST, gate)))
            for name in names
        ]
        for _ in range(8):
            await asyncio.to_thread(hanging.acquire, timeout=5)
        try:
            trigger = TableTrigger("shop.orders", "paimon_default", FAST, gate)
            return await asyncio.wait_for(first(trigger), 10)
        finally:
            over.set()
            for task in waiting:
                task.cancel()

    assert asyncio.run(story())["status"] == "open"


def test_a_watcher_tells_every_snapshot_of_a_burst(orders: TableFiles) -> None:
    orders.add()
    poll = Poll("paimon_default", "shop.orders", FAST)

    def burst() -> None:
        for _ in range(40):
            orders.add()

    assert asyncio.run(told(poll, None, 40, burst)) == list(range(2, 42))


def test_a_watcher_goes_on_where_it_was(orders: TableFiles) -> None:
    for _ in range(5):
        orders.add()
    poll = Poll("paimon_default", "shop.orders", FAST)
    position = StreamPosition.of(_snapshot(orders, 2))
    assert asyncio.run(told(poll, position, 3)) == [3, 4, 5]


def _snapshot(orders: TableFiles, snapshot_id: int) -> PaimonSnapshot | None:
    return PaimonTable(TableName("shop", orders.name), str(orders.folder)).snapshot(snapshot_id)


def test_a_watcher_of_a_table_that_has_no_snapshot_yet(orders: TableFiles) -> None:
    poll = Poll("paimon_default", "shop.orders", FAST)
    assert asyncio.run(told(poll, None, 2, lambda: [orders.add(), orders.add()])) == [1, 2]


def test_snapshots_that_expired_unseen_are_named(
    orders: TableFiles, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(5):
        orders.add()
    position = StreamPosition.of(_snapshot(orders, 1))
    for snapshot_id in (1, 2, 3):
        orders.expire(snapshot_id)
    poll = Poll("paimon_default", "shop.orders", FAST)
    assert asyncio.run(told(poll, position, 2)) == [4, 5]
    assert "snapshots 2 to 3 expired before they were seen" in caplog.text


def test_a_table_that_was_made_anew(orders: TableFiles) -> None:
    old = TableFiles(orders.warehouse, "old").create()
    old.add(time_millis=1000)
    old.add(time_millis=2000)
    position = StreamPosition.of(_snapshot(old, 2))
    orders.add(time_millis=3000)
    orders.add(time_millis=4000)
    orders.add(time_millis=5000)
    poll = Poll("paimon_default", "shop.orders", FAST)
    assert asyncio.run(told(poll, position, 3)) == [1, 2, 3]


class Store(dict[str, Any]):
    """The state of an asset, in memory."""

    async def aget(self, key: str) -> object:
        return self.get(key)

    async def aset(self, key: str, value: object) -> None:
        self[key] = value


async def stored(store: Store, seconds: float, count: int) -> list[Any]:
    """The ids of so many snapshots that a watcher with this interval tells and Airflow stores."""
    from airflow.triggers.shared_stream import AdvanceItem, AdvanceOutcome

    from airflow_provider_merge.triggers.stored_events import StoredEvents

    events = StoredEvents(Poll("paimon_default", "shop.orders", seconds), store)
    found = []
    async with contextlib.aclosing(events.open_stream()) as stream:
        async for payload, position in stream:
            found.append(payload["snapshot_id"])
            await events.advance([AdvanceItem(position, AdvanceOutcome(acked=1, failed=0))])
            if len(found) == count:
                break
    return found


@pytest.mark.skipif(not AIRFLOW_V_3_3_PLUS, reason="needs the state store of Airflow 3.3")
def test_a_watcher_with_another_interval_goes_on_where_it_was(orders: TableFiles) -> None:
    store = Store()

    async def story() -> tuple[Any, Any]:
        watcher = asyncio.create_task(stored(store, FAST, 1))
        while not store:
            await asyncio.sleep(FAST)
        orders.add()
        before = await asyncio.wait_for(watcher, 10)
        orders.add()
        orders.add()
        return before, await asyncio.wait_for(stored(store, 2 * FAST, 2), 10)

    assert asyncio.run(story()) == ([1], [2, 3])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"table": "orders"}, "not a table name"),
        ({"table": "a.b", "poll_interval": 0}, "above 0"),
        ({"table": "a.b", "poll_interval": "2 min"}, r"Write timedelta\(minutes=2\) or 120"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        TableTrigger(**arguments)
