"""Iceberg tables on a REST catalog and an S3 store: the example ``iceberg_orders`` as it is, a
deferred sensor, a watcher, a backfill. No secret is in anything that is left or was seen meanwhile.
"""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path
from typing import Any

from tests.live.client import ENDED, Client
from tests.live.database import content
from tests.live.evidence import Watch, files_below, places_of
from tests.live.lake import Lake
from tests.live.server import Server
from tests.live.spark_python import ROOT
from tests.support.waiting import wait_for

# Run in the Spark environment, behind the imports of ``Lake.run``.
_MAKE = """
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, DecimalType, LongType, NestedField, StringType
schema = Schema(
    NestedField(1, "order_id", LongType(), required=True), NestedField(2, "day", DateType()),
    NestedField(3, "customer", StringType()), NestedField(4, "amount", DecimalType(10, 2)),
)
catalog.create_namespace("shop")
table = catalog.create_table(
    ("shop", "orders"), schema,
    partition_spec=PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "day")),
    properties={"write.merge.mode": "merge-on-read"},
)
rows = [
    {"order_id": id, "day": date(2026, 1, day), "customer": "old", "amount": Decimal(10 * id)}
    for id, day in [(1, 1), (2, 1), (9, 3)]
]
table.append(pa.Table.from_pylist(rows, schema=table.schema().as_arrow()))
"""
_DAGS = """
from datetime import datetime
from airflow.sdk import DAG, Asset, AssetWatcher, CronDataIntervalTimetable
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow_provider_merge.operators.compact import CompactOperator
from airflow_provider_merge.operators.expire_snapshots import ExpireSnapshotsOperator
from airflow_provider_merge.operators.insert_overwrite import InsertOverwriteOperator
from airflow_provider_merge.operators.remove_orphan_files import RemoveOrphanFilesOperator
from airflow_provider_merge.operators.sources import sql_source
from airflow_provider_merge.sensors.partition import PartitionSensor
from airflow_provider_merge.triggers.table import TableTrigger

start = {"start_date": datetime(2026, 1, 1)}
TRIGGER = TableTrigger("shop.orders", "iceberg_default", poll_interval=1)
WATCHED = Asset("iceberg", watchers=[AssetWatcher("snapshots", TRIGGER)])

with DAG("iceberg_gate", schedule=None, **start):
    PartitionSensor(
        task_id="gate", table="shop.orders", catalog_conn_id="iceberg_default",
        partition={"day": "2026-01-02"}, min_rows=1,
        deferrable=True, poke_interval=1, timeout=3600,
    )

with DAG("iceberg_watch", schedule=[WATCHED], is_paused_upon_creation=False, **start):
    EmptyOperator(task_id="nothing")

care = {"target": "shop.orders", "catalog_conn_id": "iceberg_default"}
paused = {"is_paused_upon_creation": False}
with DAG("iceberg_care", schedule=None, default_args=care, **paused, **start):
    compact = CompactOperator(task_id="compact", mode="full")
    expire = ExpireSnapshotsOperator(task_id="expire", older_than="0 s")
    compact >> expire >> RemoveOrphanFilesOperator(task_id="orphans")

daily = CronDataIntervalTimetable("@daily", timezone="UTC")
with DAG("iceberg_days", schedule=daily, end_date=datetime(2026, 1, 31), catchup=False, **start):
    InsertOverwriteOperator(
        task_id="overwrite", target="shop.orders", catalog_conn_id="iceberg_default",
        mode="dynamic",
        source=sql_source(
            "SELECT 100L AS order_id, DATE '{{ ds }}' AS day, 'new' AS customer, 1.5BD AS amount",
            sources={},
        ),
    )
"""
# Of the second of January, with late changes of the day before.
_CSV = """order_id,day,customer,amount,cancelled
1,2026-01-01,late,11,false
2,2026-01-01,late,22,true
3,2026-01-02,new,33,false
4,2026-01-02,new,44,true
"""


FIRST = [["1", "2026-01-01", "late", "11.00"]]
SECOND = [["3", "2026-01-02", "new", "33.00"]]
THIRD = [["9", "2026-01-03", "old", "90.00"]]
EXAMPLE = "iceberg_orders"


def test_a_table_in_a_catalog_and_a_store(server: Server, lake: Lake, tmp_path: Path) -> None:
    client, marker = server.client, f"open-{uuid.uuid4()}"
    first = prepare(server, lake)
    conf = {"landing": landing(tmp_path), "day": "2026-01-02"}

    with Watch(server) as watch:
        client.trigger("iceberg_gate", "run")
        wait_for("the deferral", lambda: gate_of(client) == "deferred")
        wait_for("the first snapshot", lambda: told(client) == first)
        client.trigger(EXAMPLE, marker, conf=conf)
        assert client.ended(EXAMPLE, marker) == "success"
        assert client.ended("iceberg_gate", "run") == "success"
        merged, ids = lake.look("shop.orders")
        client.backfill("iceberg_days", "2026-01-01", "2026-01-02", runs=2)
        runs = backfilled(client, "iceberg_days")

    assert client.xcom(EXAMPLE, marker, "create_orders")["status"] == "unchanged"
    result = client.xcom(EXAMPLE, marker, EXAMPLE)
    counts = {name: result["metrics"][name] for name in ("inserted", "updated", "deleted")}
    assert counts == {"inserted": 1, "updated": 1, "deleted": 1}
    assert merged == [*FIRST, *SECOND, *THIRD]
    # Digits that a browser would lose.
    assert [result["base_snapshot_id"], result["snapshot_id"]] == ids
    gate = client.xcom("iceberg_gate", "run", "gate")
    (extra,) = client.asset_extras(EXAMPLE)
    assert gate["snapshot_id"] == extra["snapshot_id"] == result["snapshot_id"]
    assert (gate["partitions"][0]["name"], gate["partitions"][0]["rows"]) == ("day=2026-01-02", 1)

    assert {run["state"] for run in runs} == {"success"}
    replaced = [client.xcom("iceberg_days", run["dag_run_id"], "overwrite") for run in runs]
    days = ["2026-01-01", "2026-01-02"]
    assert sorted(each["partitions"] for each in replaced) == [[f"day={day}"] for day in days]
    rows, all_ids = lake.look("shop.orders")
    assert rows == [*(["100", day, "new", "1.50"] for day in days), *THIRD]
    assert all_ids[:-2] == ids
    assert set(all_ids[-2:]) == {each["snapshot_id"] for each in replaced}
    ids = all_ids
    wait_for("the last snapshot", lambda: told(client) == ids[-1])
    assert watched(client) == ids[1:], "each snapshot once"
    care_is_taken(client, lake, len(ids))

    seen = everything(server, lake) | watch.seen
    found = places_of(marker, seen)
    for part in ("bucket/tables/", "database", "home/logs/", "/request.json"):
        assert any(part in place for place in found), (part, found)
    assert any(name.startswith("environment java") for name in watch.seen), "no Spark was seen"
    leaks = {name: places_of(secret, seen) for name, secret in lake.secrets.items()}
    assert leaks == {name: [] for name in lake.secrets}
    assert not [name for name in seen if name.endswith(".base")], "no note of a base is left"


def care_is_taken(client: Client, lake: Lake, snapshots: int) -> None:
    """Old snapshots go with their files; the rows stay."""
    rows, _ = lake.look("shop.orders")
    client.trigger("iceberg_care", "care")
    assert client.ended("iceberg_care", "care") == "success"
    compacted, expired, orphans = (
        client.xcom("iceberg_care", "care", each) for each in ("compact", "expire", "orphans")
    )
    # Each day has one file, which has no deletes.
    assert (compacted["status"], compacted["files_before"]) == ("unchanged", 0)
    assert (expired["status"], expired["snapshots"]) == ("committed", snapshots - 1)
    assert expired["data_files"] > 0
    assert orphans["status"] == "unchanged"
    assert lake.look("shop.orders")[0] == rows
    files = {name for name in files_below(lake.store.bucket) if name.endswith(".parquet")}
    assert len([name for name in files if "/data/" in name]) == 3


def prepare(server: Server, lake: Lake) -> int:
    """Make table, connection and DAGs; the table's only snapshot."""
    lake.run(_MAKE)
    server.client.call("POST", "/connections", lake.connection("iceberg_default"))
    shutil.copyfile(ROOT / "dags_examples" / f"{EXAMPLE}.py", server.dags / f"{EXAMPLE}.py")
    server.add_dag("iceberg_gate", _DAGS)
    server.start_dags(EXAMPLE)
    _, (first,) = lake.look("shop.orders")
    return first


def landing(folder: Path) -> str:
    """A folder with the files of a day."""
    files = folder / "landing" / "orders" / "2026-01-02"
    files.mkdir(parents=True)
    (files / "part.csv").write_text(_CSV)
    return str(folder / "landing")


def gate_of(client: Client) -> str:
    return client.task("iceberg_gate", "run", "gate")["state"]


def everything(server: Server, lake: Lake) -> dict[str, Any]:
    """All that is left: files of the server and of the bucket, and the database."""
    bucket = {f"bucket/{name}": text for name, text in files_below(lake.store.bucket).items()}
    files = {
        name: text for name, text in files_below(server.folder).items() if "airflow.db" not in name
    }
    # Airflow keeps passwords and extras encrypted, but not logins.
    return {**bucket, **files, "database": content(server, without={"connection"})}


def told(client: Client) -> int | None:
    """The snapshot up to which the state store says that the events are stored; None: none yet."""
    assets = client.call("GET", "/assets", name_pattern="iceberg")["assets"]
    for asset in (each for each in assets if each["name"] == "iceberg"):
        found = client.call("GET", f"/assets/{asset['id']}/state-store")["asset_state_store"]
        for each in found:
            return each["value"]["snapshot_id"]
    return None


def watched(client: Client) -> list[Any]:
    """The snapshots of all events of the watcher, oldest first."""
    query = {"order_by": "timestamp", "limit": 100}
    events = client.call("GET", "/assets/events", **query)["asset_events"]
    payloads = [each["extra"].get("payload", {}) for each in events]
    return [each["snapshot_id"] for each in payloads if each.get("table") == "shop.orders"]


def backfilled(client: Client, dag_id: str) -> list[dict[str, Any]]:
    """The runs of a DAG's backfills, all of which have ended."""

    def ended() -> list[dict[str, Any]]:
        runs = client.call("GET", f"/dags/{dag_id}/dagRuns", run_type="backfill")["dag_runs"]
        return runs if all(each["state"] in ENDED for each in runs) else []

    return wait_for(f"the end of the backfill of {dag_id}", ended, every=0.5)
