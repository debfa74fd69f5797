"""Deferred sensors, and a watcher that goes on after its triggerer was stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.live.client import Client
from tests.live.orders import Orders
from tests.live.server import Server
from tests.live.store import SECRET_KEY, Store
from tests.live.triggerer import Triggerer
from tests.support.paimon_metadata import TableFiles
from tests.support.waiting import wait_for

_GATE = """
from datetime import datetime
from airflow.sdk import DAG
from airflow_provider_merge.sensors.snapshot import SnapshotSensor

with DAG({dag_id!r}, schedule=None, start_date=datetime(2024, 1, 1)):
    SnapshotSensor(
        task_id="gate", table={table!r}, after_id=1, statements="merge",
        deferrable=True, poke_interval=1, timeout=3600,
    )
"""
_STALE = """
from datetime import datetime
from airflow.sdk import DAG
from airflow_provider_merge.sensors.freshness import FreshnessSensor

with DAG("stale", schedule=None, start_date=datetime(2024, 1, 1)):
    FreshnessSensor(
        task_id="gate", table="shop.stale", max_age=3600,
        deferrable=True, poke_interval=1, timeout=5,
    )
"""
_S3 = """
from datetime import datetime
from airflow.sdk import DAG
from airflow_provider_merge.sensors.partition import PartitionSensor

with DAG("on_s3", schedule=None, start_date=datetime(2024, 1, 1)):
    PartitionSensor(
        task_id="gate", table="shop.far", catalog_conn_id="far", partition={"day": "2026-02-01"},
        deferrable=True, poke_interval=1, timeout=3600,
    )
"""
_WATCHER = """
import os
from datetime import datetime
from airflow.sdk import DAG, Asset, AssetWatcher, task
from airflow_provider_merge.triggers.table import TableTrigger

TRIGGER = TableTrigger("shop.watched", poll_interval=1)
WATCHED = Asset("watched", watchers=[AssetWatcher("snapshots", TRIGGER)])

with DAG("watching", schedule=[WATCHED], start_date=datetime(2024, 1, 1), max_active_runs=1,
         is_paused_upon_creation=False):
    @task
    def note(triggering_asset_events=None):
        events = triggering_asset_events[WATCHED]
        lines = [f"{{event.extra['payload']['snapshot_id']}}\\n" for event in events]
        file = os.open({seen!r}, os.O_APPEND | os.O_WRONLY | os.O_CREAT)
        os.write(file, "".join(lines).encode())
        os.close(file)

    note()
"""


@pytest.fixture(scope="session")
def triggerer(server: Server) -> Iterator[Triggerer]:
    """To the end: the tests that follow need the one that was started last."""
    found = Triggerer(server)
    yield found
    found.close()


@pytest.mark.extended
def test_a_deferred_sensor_is_released_by_a_merge(
    orders: Callable[..., Orders], server: Server
) -> None:
    table = orders()
    gate = f"{table.dag_id}_gate"
    server.add_dag(gate, _GATE.format(dag_id=gate, table=f"shop.{table.dag_id}"))
    client = server.client
    client.trigger(gate, "run")
    wait_for("the deferral", lambda: client.task(gate, "run", "gate")["state"] == "deferred")

    table.trigger("merge")

    assert table.ended("merge") == "success"
    wait_for("the gate", lambda: client.run_state(gate, "run") in ("success", "failed"))
    found = client.xcom(gate, "run", "gate")
    assert (found["snapshot_id"], found["statement"]) == (2, "merge")
    assert (found["dag_id"], found["run_id"]) == (table.dag_id, "merge")


def test_a_deferred_sensor_that_times_out_tells_what_it_saw_last(server: Server) -> None:
    table = TableFiles(server.folder / "warehouse", "stale").create()
    table.add(time_millis=1_767_225_600_000)
    server.add_dag("stale", _STALE)
    client = server.client
    client.trigger("stale", "run")

    assert client.ended("stale", "run") == "failed"

    log = client.log("stale", "run", "gate", 1)
    assert "pausing task" in log.lower(), log
    assert (
        "shop.stale: the condition of FreshnessSensor was not met within 5 s. Last poll: "
        "newest change: snapshot 1 (APPEND, 2026-01-01T00:00:00+00:00), " in log
    )
    assert "AirflowSensorTimeout" in log
    xcoms = client.call("GET", "/dags/stale/dagRuns/run/taskInstances/gate/xcomEntries")
    assert xcoms["xcom_entries"] == []


@pytest.mark.by_turns(2, 0)
def test_a_waiting_sensor_goes_on_when_the_store_is_back(server: Server, store: Store) -> None:
    """The client behind a look tries again by itself and gives up after some nine seconds."""
    table = TableFiles(store.bucket, "far").create()
    table.add({"2026-01-31": 1})
    client = server.client
    client.call("POST", "/connections", store.connection("far"))
    server.add_dag("on_s3", _S3)
    client.trigger("on_s3", "run")
    wait_for("the deferral", lambda: client.task("on_s3", "run", "gate")["state"] == "deferred")

    store.stop()
    wait_for("polls in vain", lambda: log_of_gate(client).count("could not be polled") >= 2)
    assert client.task("on_s3", "run", "gate")["state"] == "deferred"
    store.start()
    table.add({"2026-02-01": 7})

    assert client.ended("on_s3", "run") == "success", log_of_gate(client)
    found = client.xcom("on_s3", "run", "gate")
    assert (found["snapshot_id"], found["partitions"][0]["rows"]) == (2, 7)
    assert SECRET_KEY not in log_of_gate(client)


def log_of_gate(client: Client) -> str:
    return client.log("on_s3", "run", "gate", 1)


@pytest.mark.by_turns(2, 1)
def test_a_watcher_sees_every_snapshot_once(server: Server, triggerer: Triggerer) -> None:
    table = TableFiles(server.folder / "warehouse", "watched").create()
    table.add()
    seen = server.folder / "seen.txt"
    server.add_dag("watching", _WATCHER.format(seen=str(seen)))
    told(server, 1)

    burst(table, 8)
    told(server, 9)
    triggerer.stop()
    burst(table, 6)
    triggerer.start()
    told(server, 15)
    burst(table, 6)
    told(server, 21)

    events = server.client.call("GET", "/assets/events", limit=100)
    payloads = [each["extra"].get("payload", {}) for each in events["asset_events"]]
    stored = [each["snapshot_id"] for each in payloads if each.get("table") == "shop.watched"]
    assert sorted(stored) == list(range(2, 22))

    # Airflow gives a run the events up to the first one that is new; the rest comes with the next.
    wait_for("all events in runs", lambda: all_seen(table, seen), every=5)
    found = numbers(seen)
    assert len(found) == len(set(found))


def all_seen(table: TableFiles, seen: Path) -> bool:
    """Whether runs have seen the 20 snapshots; else another one is made."""
    if set(numbers(seen)) >= set(range(2, 22)):
        return True
    table.add()
    return False


def burst(table: TableFiles, count: int) -> None:
    for _ in range(count):
        table.add()


def told(server: Server, snapshot_id: int) -> None:
    """Wait until the state store says that the events up to a snapshot are stored."""

    def is_told() -> bool:
        assets = server.client.call("GET", "/assets", name_pattern="watched")["assets"]
        if not assets:
            return False
        path = f"/assets/{assets[0]['id']}/state-store"
        found = server.client.call("GET", path)["asset_state_store"]
        return [each["value"]["snapshot_id"] for each in found] == [snapshot_id]

    wait_for(f"snapshot {snapshot_id}", is_told)


def numbers(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()] if path.exists() else []
