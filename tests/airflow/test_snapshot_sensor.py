"""``SnapshotSensor``: parameters that other tasks return, and the asset that keeps its state."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException
from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_3_PLUS
from airflow.sdk import Asset

from airflow_provider_merge.assets import table_asset
from airflow_provider_merge.metadata.paimon.table import PaimonTable
from airflow_provider_merge.metadata.table_view import TableView
from airflow_provider_merge.sensors.snapshot import SnapshotSensor
from airflow_provider_merge.triggers.gates import SnapshotGate
from spark_jobs.contract.request import TableName
from tests.airflow.support import DagFile
from tests.support.paimon_metadata import TableFiles

needs_state_store = pytest.mark.skipif(
    not AIRFLOW_V_3_3_PLUS, reason="needs the state store of Airflow 3.3"
)
BODY = """
from airflow_provider_merge.sensors.snapshot import SnapshotSensor

@task
def given(value):
    return value

SnapshotSensor(
    task_id="t",
    table="shop.orders",
    after_id=0,
    statements=given(["merge"]),
    properties=given({"merge.dag-id": "ingest"}),
)
"""


@pytest.fixture
def orders(warehouse: Path) -> TableFiles:
    return TableFiles(warehouse).create()


def test_what_other_tasks_return_may_be_a_parameter(
    airflow_db: None, orders: TableFiles, dag_file: Callable[..., DagFile]
) -> None:
    orders.add(properties={"merge.statement": "merge", "merge.dag-id": "ingest"})
    orders.add()
    tasks = dag_file(BODY).run().get_task_instances()
    assert {ti.state for ti in tasks} == {"success"}
    (sensor,) = (ti for ti in tasks if ti.task_id == "t")
    assert sensor.xcom_pull(task_ids="t")["snapshot_id"] == 1


@needs_state_store
def test_the_state_of_an_asset_with_a_name_of_its_own(orders: TableFiles) -> None:
    named = Asset("orders", uri=table_asset("paimon_default", "shop.orders").uri)
    sensor = SnapshotSensor(task_id="t", table="shop.orders", after_last=True, inlets=[named])
    assert sensor.inlets == [named], "Airflow runs no task that has two assets of one URI"
    orders.add()
    state: dict[str, Any] = {}
    store = SimpleNamespace(get=state.get, set=state.__setitem__)
    ti = SimpleNamespace(dag_id="d", task_id="t", map_index=-1, run_id="r")
    stores = {named.name: store}
    context: Any = {"ti": ti, "asset_state_store": Stores(stores)}
    assert sensor.poke(context).xcom_value["snapshot_id"] == 1
    assert len(state) == 1


@needs_state_store
@pytest.mark.parametrize("has_other_inlets", [True, False])
@pytest.mark.usefixtures("orders")
def test_a_table_that_was_not_known_when_the_dag_was_parsed(has_other_inlets: bool) -> None:
    sensor = SnapshotSensor(task_id="t", table="{{ params.table }}", after_last=True)
    sensor.table = "shop.orders"
    context: Any = {"ti": SimpleNamespace(dag_id="d", task_id="t", map_index=-1, run_id="r")}
    if has_other_inlets:
        context["asset_state_store"] = Stores({})
    remedy = r"Add table_asset\('paimon_default', 'shop\.orders'\) to inlets"
    with pytest.raises(AirflowFailException, match=remedy):
        sensor.poke(context)


class Stores(dict[str, Any]):
    """State stores by the name of their asset, as Airflow has them."""

    def __getitem__(self, asset: Asset) -> Any:  # type: ignore[override]
        return super().__getitem__(asset.name)


def test_after_a_snapshot_that_was_rolled_back(orders: TableFiles) -> None:
    for _ in range(3):
        orders.add(time_millis=1000)
    seen = SnapshotGate(after_id=3, after_millis=1000)
    assert seen.observe(view(orders)).facts is None
    orders.roll_back(1)
    assert seen.observe(view(orders)).facts is None
    orders.add(time_millis=2000)
    assert seen.observe(view(orders)).facts["snapshot_id"] == 2
    for _ in range(2):
        orders.add(time_millis=2000)
    newest = SnapshotGate(after_id=4, after_millis=2000)
    assert newest.observe(view(orders)).facts is None
    orders.add(time_millis=1500)
    assert newest.observe(view(orders)).facts["snapshot_id"] == 5, "a clock that went back"


def view(orders: TableFiles) -> TableView:
    return TableView(PaimonTable(TableName("shop", orders.name), str(orders.folder)))
