"""Sensors in every mode, on metadata that another writer left."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSkipException
from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_3_PLUS
from airflow.sdk import DAG, timezone

from airflow_provider_merge.sensors.base import TableSensor
from airflow_provider_merge.sensors.freshness import FreshnessSensor
from airflow_provider_merge.sensors.partition import PartitionSensor
from airflow_provider_merge.sensors.snapshot import SnapshotSensor
from airflow_provider_merge.sensors.tag import TagSensor
from tests.airflow.contexts import context_of
from tests.airflow.support import DagFile
from tests.support.paimon_metadata import TableFiles

HOUR = 3600 * 1000


@pytest.fixture
def orders(warehouse: Path) -> TableFiles:
    return TableFiles(warehouse).create()


def found(sensor: TableSensor) -> Any:
    """What one poll finds; None: the gate is closed."""
    value = sensor.poke({})
    return value.xcom_value if value else None


def test_a_snapshot_after_an_id(orders: TableFiles) -> None:
    sensor = SnapshotSensor(task_id="t", table="shop.orders", after_id="1")
    orders.add()
    assert found(sensor) is None
    orders.add(properties={"merge.statement": "merge", "merge.dag-id": "ingest"})
    facts = found(sensor)
    assert facts["table"] == "shop.orders"
    assert (facts["snapshot_id"], facts["statement"], facts["dag_id"]) == (2, "merge", "ingest")
    json.dumps(facts)


def test_a_snapshot_after_a_time(orders: TableFiles) -> None:
    orders.add(time_millis=1_700_000_000_000)
    early = datetime.fromtimestamp(1_700_000_000 - 1, UTC)
    late = datetime.fromtimestamp(1_700_000_000, UTC).isoformat()
    assert found(SnapshotSensor(task_id="a", table="shop.orders", after=early))["snapshot_id"] == 1
    assert found(SnapshotSensor(task_id="b", table="shop.orders", after=late)) is None


@pytest.mark.parametrize(
    ("wanted", "snapshot_id"),
    [
        ({"statements": "merge"}, 2),
        ({"statements": ["COMPACT", "OVERWRITE"]}, 3),
        ({"properties": {"merge.dag-id": "ingest"}}, 2),
        ({"properties": {"merge.dag-id": "other"}}, None),
    ],
)
def test_a_snapshot_of_a_kind(
    orders: TableFiles, wanted: dict[str, Any], snapshot_id: int | None
) -> None:
    orders.add()
    orders.add(properties={"merge.statement": "merge", "merge.dag-id": "ingest"})
    orders.add(kind="COMPACT")
    facts = found(SnapshotSensor(task_id="t", table="shop.orders", after_id=0, **wanted))
    assert (facts and facts["snapshot_id"]) == snapshot_id


def test_what_a_snapshot_is_expected_to_be(orders: TableFiles) -> None:
    wanted: dict[str, Any] = {
        "statements": ["merge", "delete"],
        "properties": {"merge.dag-id": "ingest"},
    }
    sensor = SnapshotSensor(task_id="a", table="shop.orders", after_id=0, **wanted)
    expected = "expected one, by merge or delete, with merge.dag-id=ingest"
    assert found(sensor) is None
    assert sensor._seen == f"the table has no snapshot, {expected}"
    orders.add(time_millis=0)
    assert found(sensor) is None
    newest = "newest: snapshot 1 (APPEND, 1970-01-01T00:00:00+00:00)"
    assert sensor._seen == f"{newest}, {expected}"
    after = SnapshotSensor(task_id="b", table="shop.orders", after="2026-01-31T00:00:00Z")
    assert found(after) is None
    assert after._seen == f"{newest}, expected one after 2026-01-31T00:00:00+00:00"


def test_snapshots_that_expired_between_two_polls(orders: TableFiles) -> None:
    sensor = SnapshotSensor(task_id="t", table="shop.orders", after_id=1, statements="merge")
    for _ in range(4):
        orders.add()
    assert found(sensor) is None
    for snapshot_id in (1, 2, 3):
        orders.expire(snapshot_id)
    assert found(sensor) is None
    assert "2 snapshots after 1 expired before this poll" in sensor._seen


def test_partitions(orders: TableFiles) -> None:
    orders.add({"2026-01-30": 5, "2026-01-31": 2})
    one = PartitionSensor(task_id="a", table="shop.orders", partition={"day": "2026-01-31"})
    facts = found(one)
    assert facts["snapshot_id"] == 1
    assert facts["partitions"] == [{"name": "day=2026-01-31", "rows": 2, "files": 1, "bytes": 100}]
    several = PartitionSensor(
        task_id="b",
        table="shop.orders",
        partition={"day": "2026-01-29"},
        through={"day": "2026-01-31"},
    )
    assert found(several) is None
    met, missing = "2 of 3 partitions meet the condition", "day=2026-01-29 does not exist"
    assert several._seen.startswith(f"{met}; partition {missing}; newest: snapshot 1 (APPEND")
    orders.add({"2026-01-29": 1})
    assert len(found(several)["partitions"]) == 3


def test_a_partition_with_rows(orders: TableFiles) -> None:
    orders.add({"2026-01-31": 2})
    sensor = PartitionSensor(
        task_id="t", table="shop.orders", partition={"day": "2026-01-31"}, min_rows=3
    )
    assert found(sensor) is None
    assert sensor._seen.startswith("partition day=2026-01-31 has 2 rows, expected at least 3;")
    orders.add({"2026-01-31": 1})
    assert found(sensor)["partitions"][0]["rows"] == 3
    assert sensor._seen.endswith(": partition day=2026-01-31 has 3 rows")


def test_a_partition_that_changed(orders: TableFiles) -> None:
    now = int(time.time() * 1000)
    orders.add({"2026-01-31": 2}, time_millis=now - 2 * HOUR)
    orders.add({"2026-01-30": 2}, time_millis=now)
    orders.add({"2026-01-31": 2}, time_millis=now, kind="COMPACT")
    sensor = PartitionSensor(
        task_id="t",
        table="shop.orders",
        partition={"day": "2026-01-31"},
        changed_since=datetime.fromtimestamp(now / 1000 - 3600, UTC),
    )
    assert found(sensor) is None
    since = sensor.changed_since.isoformat(timespec="seconds")
    assert f"partition day=2026-01-31 has not changed since {since}" in sensor._seen
    orders.add({"2026-01-31": 1}, time_millis=now)
    assert found(sensor)["snapshot_id"] == 4


def test_a_tag(orders: TableFiles) -> None:
    orders.add()
    sensor = TagSensor(task_id="t", table="shop.orders", tag="daily-2026-01-31")
    assert found(sensor) is None
    assert sensor._seen == "tag daily-2026-01-31 does not exist; the table has no tags"
    orders.tag("daily-2026-01-30", 1)
    assert found(sensor) is None
    assert sensor._seen.endswith("the table has 1 tag: daily-2026-01-30")
    orders.tag("daily-2026-01-31", 1)
    assert found(sensor)["tag"] == "daily-2026-01-31"
    assert found(sensor)["snapshot_id"] == 1


def test_freshness(orders: TableFiles) -> None:
    now = int(time.time() * 1000)
    orders.add({"2026-01-31": 1}, time_millis=now - 3 * HOUR)
    table = FreshnessSensor(task_id="a", table="shop.orders", max_age=3600)
    partition = FreshnessSensor(
        task_id="b", table="shop.orders", max_age=3600, partition={"day": "2026-01-31"}
    )
    orders.add({"2026-01-31": 1}, kind="COMPACT")
    assert found(table) is None
    assert "snapshot 1 (APPEND" in table._seen
    assert "3 h old, expected at most 1 h" in table._seen
    orders.add({"2026-01-30": 1})
    assert found(table)["snapshot_id"] == 3
    assert found(partition) is None
    before = "no change to partition day=2026-01-31 in the last 1 h; newest change before: snapshot"
    assert partition._seen.startswith(before)
    orders.add({"2026-01-31": 1})
    assert found(partition)["age_seconds"] < 60


HISTORY_ENDS = "snapshots before 2 have expired and may have changed it"


def test_freshness_beyond_the_retained_snapshots(orders: TableFiles) -> None:
    now = int(time.time() * 1000)
    orders.add({"2026-01-31": 1}, time_millis=now - 70 * HOUR // 60)
    orders.add({"2026-01-30": 1}, time_millis=now - HOUR // 2)
    orders.expire(1)
    day = {"2026-01-31", "2026-01-30"}
    sensors = [
        FreshnessSensor(task_id=each, table="shop.orders", max_age=7200, partition={"day": each})
        for each in sorted(day)
    ]
    assert found(sensors[0])["snapshot_id"] == 2
    assert found(sensors[1]) is None
    no_change = "no change to partition day=2026-01-31 is retained, expected one in the last 2 h"
    assert f"{no_change}; newest: snapshot 2" in sensors[1]._seen
    assert HISTORY_ENDS in sensors[1]._seen
    short = FreshnessSensor(
        task_id="t", table="shop.orders", max_age=60, partition={"day": "2026-01-31"}
    )
    assert found(short) is None
    assert "expired" not in short._seen, "history reaches back further"


def test_a_change_that_was_seen_before_its_snapshot_expired(orders: TableFiles) -> None:
    now = int(time.time() * 1000)
    orders.add({"2026-01-31": 1, "2026-01-30": 1}, time_millis=now - 2 * HOUR)
    orders.add({"2026-01-31": 1}, time_millis=now - HOUR // 2)
    orders.add({"2026-01-29": 1}, time_millis=now - HOUR // 3)
    options: dict[str, Any] = {
        "table": "shop.orders",
        "partition": [{"day": "2026-01-31"}, {"day": "2026-01-30"}],
        "changed_since": datetime.fromtimestamp(now / 1000 - 3600, UTC),
    }
    waiting = PartitionSensor(task_id="a", **options)
    assert found(waiting) is None
    assert "partition day=2026-01-30 has not changed since" in waiting._seen
    assert "expired" not in waiting._seen
    orders.add({"2026-01-30": 1}, time_millis=now)
    for snapshot_id in (1, 2):
        orders.expire(snapshot_id)
    late = PartitionSensor(task_id="b", **options)
    assert found(late) is None
    assert "partition day=2026-01-31 has not changed since" in late._seen
    assert "; snapshots before 3 have expired" in late._seen
    assert found(waiting)["snapshot_id"] == 4


PREAMBLE = """
from airflow_provider_merge.sensors.freshness import FreshnessSensor
from airflow_provider_merge.sensors.partition import PartitionSensor
from airflow_provider_merge.sensors.snapshot import SnapshotSensor
"""
MODES = ["mode='poke'", "mode='reschedule'", "deferrable=True"]


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_finds(
    airflow_db: None, orders: TableFiles, dag_file: Callable[..., DagFile], mode: str
) -> None:
    orders.add({"2026-01-31": 7})
    body = f"""{PREAMBLE}
PartitionSensor(
    task_id="t", table="shop.{{{{ params.t }}}}", partition={{"day": "{{{{ params.d }}}}"}}, {mode}
)
"""
    run = dag_file(body, arguments="params={'t': 'orders', 'd': '2026-01-31'}").run()
    (ti,) = run.get_task_instances()
    assert ti.state == "success"
    assert ti.xcom_pull(task_ids="t")["partitions"][0]["rows"] == 7


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES[::2])
@pytest.mark.parametrize(("soft_fail", "state"), [(False, "failed"), (True, "skipped")])
def test_time_out_tells_what_was_seen(
    airflow_db: None,
    orders: TableFiles,
    dag_file: Callable[..., DagFile],
    mode: str,
    soft_fail: bool,
    state: str,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    orders.add(time_millis=0)
    body = f"""{PREAMBLE}
FreshnessSensor(
    task_id="t", table="shop.orders", max_age=60, {mode}, soft_fail={soft_fail},
    timeout=1, poke_interval=0.3,
)
"""
    run = dag_file(body).run()
    (ti,) = run.get_task_instances()
    assert ti.state == state
    printed = capsys.readouterr()
    text = printed.out + printed.err + caplog.text
    assert "Last poll: newest change: snapshot 1 (APPEND, 1970-01-01T00:00:00+00:00)" in text


@pytest.mark.parametrize("deferrable", [False, True])
def test_a_sensor_that_skips_what_is_wrong_says_it(
    orders: TableFiles,
    deferrable: bool,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with DAG("d", schedule=None):
        sensor = PartitionSensor(
            task_id="t",
            table="shop.nowhere",
            partition={"day": "2026-01-31"},
            soft_fail=True,
            deferrable=deferrable,
        )
    with pytest.raises(AirflowSkipException):
        sensor.execute(context_of(sensor))

    printed = capsys.readouterr()
    text = printed.out + printed.err + caplog.text
    assert "Skipped, as soft_fail or never_fail asks: TABLE_NOT_FOUND" in text


def test_a_store_that_is_gone_for_a_while(orders: TableFiles) -> None:
    orders.add()
    sensor = SnapshotSensor(task_id="t", table="shop.orders", after_id=0)
    folder = orders.folder / "snapshot"
    # A link to itself can be read by nobody, root included.
    folder.rename(folder.with_name("away"))
    folder.symlink_to(folder)
    assert found(sensor) is None
    assert "STORAGE_UNAVAILABLE" in sensor._seen
    folder.unlink()
    folder.with_name("away").rename(folder)
    assert found(sensor)["snapshot_id"] == 1


@pytest.mark.slow
@pytest.mark.skipif(not AIRFLOW_V_3_3_PLUS, reason="needs the state store of Airflow 3.3")
def test_after_the_last_one(
    airflow_db: None, orders: TableFiles, dag_file: Callable[..., DagFile]
) -> None:
    sensor = "SnapshotSensor(task_id='t', table='shop.orders', after_last=True, **now)"
    file = dag_file(f"{PREAMBLE}\nnow = {{'timeout': 1, 'poke_interval': 0.2}}\n{sensor}")
    dag = file.dag()
    orders.add()
    assert state_of(dag) == ("success", 1)
    assert state_of(dag) == ("failed", None)
    orders.add()
    orders.add()
    assert state_of(dag) == ("success", 3)
    orders.roll_back(1)
    assert state_of(dag) == ("failed", None)
    orders.add()
    assert state_of(dag) == ("success", 2)
    file.path.unlink()


@pytest.mark.skipif(AIRFLOW_V_3_3_PLUS, reason="Airflow before 3.3 has no state store")
def test_after_the_last_one_is_refused_before_airflow_3_3(orders: TableFiles) -> None:
    sensor = SnapshotSensor(task_id="t", table="shop.orders", after_last=True)
    with pytest.raises(AirflowFailException, match=r"state store of Airflow 3\.3"):
        found(sensor)


def state_of(dag: DAG) -> tuple[Any, Any | None]:
    (ti,) = dag.test(logical_date=timezone.utcnow()).get_task_instances()
    value = ti.xcom_pull(task_ids="t") if ti.state == "success" else None
    return ti.state, value and value["snapshot_id"]


FINAL = {
    "table": ("SnapshotSensor", "table='shop.nothing', after_id=0", "TABLE_NOT_FOUND"),
    "column": (
        "PartitionSensor",
        "table='shop.orders', partition={'hour': 1}",
        "'hour' is not a partition column",
    ),
    "value": (
        "PartitionSensor",
        "table='shop.orders', partition={'day': 'x'}",
        "day: 'x' is not a valid DATE",
    ),
}


@pytest.mark.parametrize("mode", MODES[::2])
@pytest.mark.parametrize(("sensor", "parameters", "message"), FINAL.values(), ids=FINAL)
def test_final_errors_end_the_task(
    airflow_db: None,
    orders: TableFiles,
    dag_file: Callable[..., DagFile],
    mode: str,
    sensor: str,
    parameters: str,
    message: str,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    orders.add()
    body = f"{PREAMBLE}\n{sensor}(task_id='t', retries=3, {parameters}, {mode})"
    run = dag_file(body).run()
    (ti,) = run.get_task_instances()
    assert ti.state == "failed"
    printed = capsys.readouterr()
    assert message in printed.out + printed.err + caplog.text
