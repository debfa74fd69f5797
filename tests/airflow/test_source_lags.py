"""How far a table is behind the sources whose changes tasks apply to it."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from airflow.providers.common.compat.sdk import AirflowFailException
from pyiceberg.catalog import Catalog

from airflow_provider_merge.sensors.source_lag import SourceLagSensor
from airflow_provider_merge.triggers.gates import gate_arguments, gate_of
from spark_jobs.contract.marks import PREFIX
from spark_jobs.contract.properties import DAG_ID, OPERATION_ID, TASK_ID
from spark_jobs.contract.undone import undone_properties
from spark_jobs.errors import RequestError
from tests.airflow.tables_ui_client import Caller
from tests.airflow.test_iceberg_tables import DAY
from tests.support.iceberg_tables import IcebergTable
from tests.support.paimon_metadata import TableFiles

HOUR = 3_600_000


class Chain:
    """A table ``shop.orders`` whose changes the task ``silver.merge`` applies to ``shop.clean``."""

    def __init__(self, warehouse: Path) -> None:
        self.source = TableFiles(warehouse).create()
        self.target = TableFiles(warehouse, name="clean").create()
        self.now = int(time.time() * 1000)

    def change(self, hours_ago: float, kind: str = "APPEND") -> int:
        """A snapshot of the source with one row."""
        return self.source.add(kind=kind, time_millis=int(self.now - hours_ago * HOUR))

    def apply(self, snapshot: int, task: str = "merge", **more: str) -> None:
        """A snapshot of the target with the mark of a task."""
        mark = json.dumps({"table": "shop.orders", "snapshot": snapshot, "seen": "0"})
        origin = {DAG_ID: "silver", TASK_ID: task, OPERATION_ID: f"{task}-{snapshot}"}
        self.target.add(properties={f"{PREFIX}{task}": mark, **origin, **more})


@pytest.fixture
def chain(warehouse: Path) -> Chain:
    return Chain(warehouse)


def lag(**parameters: Any) -> Any:
    """The lag of the first source that one poll tells; None: the sensor goes on waiting."""
    found = SourceLagSensor(task_id="t", table="shop.clean", **parameters).poke({})
    return found.xcom_value["sources"][0] if found else None


def told(**parameters: Any) -> str:
    """What a poll says that goes on waiting."""
    sensor = SourceLagSensor(task_id="t", table="shop.clean", **parameters)
    assert sensor.poke({}) is False
    return sensor._seen


def test_a_table_is_behind_until_all_is_applied(chain: Chain) -> None:
    first = chain.change(5)
    chain.apply(first)
    assert lag() == {
        "table": "shop.orders",
        "dag_id": "silver",
        "task_id": "merge",
        "applied_snapshot_id": first,
        "snapshots": 0,
        "seconds": 0.0,
        "records": 0,
    }
    chain.change(3)
    last = chain.change(1)
    assert told().startswith("silver.merge is 2 snapshots behind shop.orders, the oldest of 3")
    assert "expected at most 0 snapshots" in told()
    assert lag(max_snapshots=1) is None
    assert lag(max_snapshots="2")["snapshots"] == 2
    assert lag(max_lag=2 * 3600) is None
    assert lag(max_lag=4 * 3600)["seconds"] == pytest.approx(3 * 3600, abs=120)
    chain.apply(last)
    assert lag()["applied_snapshot_id"] == last


def test_a_compaction_of_the_source_is_nothing_to_apply(chain: Chain) -> None:
    chain.apply(chain.change(2))
    chain.change(1, kind="COMPACT")
    assert lag()["snapshots"] == 0


def test_a_source_that_was_empty_when_it_was_applied(chain: Chain) -> None:
    chain.apply(0)
    assert lag()["snapshots"] == 0
    chain.change(1)
    assert lag(max_snapshots=1)["snapshots"] == 1


def test_only_what_one_task_has_applied(chain: Chain) -> None:
    first = chain.change(2)
    chain.apply(first, "slow")
    chain.apply(chain.change(1), "quick")
    assert lag(consumer_task_id="quick")["snapshots"] == 0
    assert lag(consumer_task_id="slow") is None
    assert lag() is None
    assert lag(consumer_dag_id="silver", source="shop.orders", max_snapshots=1) is not None
    assert told(consumer_task_id="other").startswith(
        "no retained snapshot tells of changes of a table that other has applied"
    )


def test_what_an_undo_took_back_is_left_again(chain: Chain) -> None:
    first = chain.change(2)
    chain.apply(first)
    last = chain.change(1)
    chain.apply(last)
    chain.target.add(properties=undone_properties("silver", "run", [f"merge-{last}"]))
    assert lag(max_snapshots=1)["applied_snapshot_id"] == first


def test_a_history_that_does_not_tell_is_no_lag_of_nothing(chain: Chain) -> None:
    chain.change(3)
    chain.apply(chain.change(2))
    chain.source.roll_back(1)
    text = "the history of shop.orders does not tell how far silver.merge is behind"
    assert told(max_snapshots=100).startswith(text)


def test_a_source_that_is_not_there(chain: Chain) -> None:
    chain.apply(chain.change(2))
    shutil.rmtree(chain.source.folder)
    sensor = SourceLagSensor(task_id="t", table="shop.clean")
    task = SimpleNamespace(dag_id="d", task_id="t", map_index=-1, run_id="r", try_number=1)
    context: Any = {"ti": task}
    with pytest.raises(AirflowFailException, match=r"TABLE_NOT_FOUND: .*shop\.orders"):
        sensor.poke(context)


def test_a_name_that_is_no_table_is_not_waited_for(chain: Chain) -> None:
    chain.apply(chain.change(2))
    sensor = SourceLagSensor(task_id="t", table="shop.clean", source="shop.order")
    task = SimpleNamespace(dag_id="d", task_id="t", map_index=-1, run_id="r", try_number=1)
    context: Any = {"ti": task}
    with pytest.raises(
        AirflowFailException, match=r"(?s)shop\.order is no table.*changes of: shop\.orders"
    ):
        sensor.poke(context)


def test_marks_of_files_and_of_others_are_left_out(chain: Chain) -> None:
    foreign = {f"{PREFIX}files": '{"kind": "files"}', f"{PREFIX}odd": "[", f"{PREFIX}no": "1"}
    chain.target.add(properties=foreign)
    assert told().startswith("no retained snapshot tells of changes of a table")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_snapshots": -1}, "max_snapshots: -1 is below 0"),
        ({"max_snapshots": 1, "max_lag": 60}, "max_lag: given beside max_snapshots"),
        ({"max_lag": 0}, "max_lag"),
        ({"source": "orders"}, "source"),
        ({"consumer_task_id": " "}, "consumer_task_id"),
    ],
)
def test_parameters_that_are_wrong(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        SourceLagSensor(task_id="t", table="shop.clean", **parameters)


def test_the_trigger_has_the_same_condition(chain: Chain) -> None:
    sensor = SourceLagSensor(task_id="t", table="shop.clean", max_lag=60, source="shop.orders")
    gate = sensor.gate({})
    assert gate_of(json.loads(json.dumps(gate_arguments(gate)))) == gate


def test_iceberg(iceberg_catalog: Catalog) -> None:
    source = IcebergTable.create(iceberg_catalog)
    source.append(DAY, "Oslo", rows=5)
    applied = source.head
    mark = json.dumps({"table": "shop.orders", "snapshot": applied, "seen": "0"})
    target = iceberg_catalog.create_table("shop.clean", pa.schema({"id": pa.int64()}))
    origin = {DAG_ID: "silver", TASK_ID: "merge", OPERATION_ID: "1"}
    target.append(pa.table({"id": [1]}), snapshot_properties={f"{PREFIX}m": mark, **origin})
    ours: dict[str, Any] = {"catalog_conn_id": "iceberg_default"}
    assert lag(**ours)["snapshots"] == 0
    source.append(DAY, "Oslo", rows=3)
    assert lag(**ours) is None
    assert lag(max_snapshots=1, **ours)["snapshots"] == 1


def test_the_page(chain: Chain, users: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    chain.apply(chain.change(2))
    chain.change(1)
    admin: Caller = users["ADMIN"]
    (found,) = admin.told("lags", table="clean")["sources"]
    assert (found["source"], found["snapshots"]) == ("shop.orders", 1)
    assert (found["dag_id"], found["task_id"]) == ("silver", "merge")
    monkeypatch.setattr("airflow_provider_merge.ui.routes.readable_dags", lambda *_: frozenset())
    (found,) = admin.told("lags", table="clean")["sources"]
    assert (found["source"], found["dag_id"], found["task_id"]) == ("shop.orders", None, None)
    shutil.rmtree(chain.source.folder)
    (found,) = admin.told("lags", table="clean")["sources"]
    assert found["problem"]["code"] == "TABLE_NOT_FOUND"


def test_a_source_in_another_catalog(
    chain: Chain, iceberg_catalog: Catalog, users: dict[str, Any]
) -> None:
    source = IcebergTable.create(iceberg_catalog)
    source.append(DAY, "Oslo", rows=5)
    mark = {"table": "shop.orders", "snapshot": source.head, "connection": "iceberg_default"}
    origin = {DAG_ID: "silver", TASK_ID: "merge", OPERATION_ID: "1"}
    chain.target.add(properties={f"{PREFIX}m": json.dumps(mark), **origin})
    assert lag()["table"] == "iceberg_default:shop.orders"
    source.append(DAY, "Oslo", rows=3)
    named = "iceberg_default:shop.orders"
    assert lag(source=named) is None
    assert lag(source=named, max_snapshots=1)["snapshots"] == 1
    (found,) = users["ADMIN"].told("lags", table="clean")["sources"]
    assert (found["source"], found["snapshots"]) == (named, None)
