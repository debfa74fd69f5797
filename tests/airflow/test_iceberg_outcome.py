"""A job on an Iceberg table that commits and dies: its retry finds the snapshot, by a large id."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog

from airflow_provider_merge.metadata.operations import read_result
from spark_jobs.contract.operation_files import base_path
from spark_jobs.contract.properties import TRY_NUMBER, metrics_property, operation_properties
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import Metrics
from tests.airflow.support import DagFile, FakeSubmitter, connection
from tests.airflow.test_assets import asset_events
from tests.airflow.test_iceberg_tables import DAY
from tests.support.iceberg_tables import IcebergTable

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("airflow_db", "iceberg_catalog")]

MERGE = """
MergeIntoOperator(
    task_id="merge",
    target="shop.orders",
    catalog_conn_id="iceberg_default",
    source=table_source("shop.updates"),
    on="t.id = s.id",
    when=[when_matched().update_all()],
    retries=1,
)
"""
# Browsers, and all that reads JSON as they do, make another number of a larger one.
EXACT = 2**53


@pytest.fixture
def orders(iceberg_catalog: Catalog) -> IcebergTable:
    """A table whose newest id is large."""
    table = IcebergTable.create(iceberg_catalog)
    while not table.append(DAY, "Oslo") > EXACT:
        pass
    return table


def dies_after_its_commit(workspace: Path, orders: IcebergTable) -> Callable[[JobRequest], None]:
    """A job that leaves its note and its snapshot, and no result."""

    def job(request: JobRequest) -> None:
        for name in (request.operation_id, "other"):
            note = workspace / base_path(name)
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_text("{}")
        orders.properties = {
            **operation_properties(request, orders.head),
            **metrics_property(Metrics(updated=2)),
            # This try's own, and that of one that no one could ask.
            TRY_NUMBER: "0",
        }
        while not orders.append(DAY, "Rome") > EXACT:
            orders.table.manage_snapshots().rollback_to_snapshot(
                int(orders.properties["merge.base-snapshot-id"])
            ).commit()
        orders.properties = {}
        orders.compact()

    return job


def test_a_retry_finds_its_own_commit(
    orders: IcebergTable,
    submitter: FakeSubmitter,
    dag_file: Callable[..., DagFile],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    base, workspace = orders.head, tmp_path / "workspace"
    extra = {
        "type": "sql",
        "warehouse": str(tmp_path / "warehouse"),
        "workspace": str(workspace),
        "ui_url": "https://lake.example/{table}/{snapshot_id}",
    }
    host = f"sqlite:///{tmp_path}/catalog.db"
    connection(monkeypatch, "iceberg_default", conn_type="iceberg", host=host, extra=extra)
    connection(monkeypatch, "spark_default", conn_type="spark", host="local[1]")
    workspace.mkdir()
    submitter.outcomes = [dies_after_its_commit(workspace, orders)]
    submitter.process_fails = True

    run = dag_file(MERGE).run()

    (ti,) = run.get_task_instances()
    assert ti.state == "success"
    assert len(submitter.jobs) == 1
    made = next(each for each in orders.table.metadata.snapshots if each.summary["merge.task-id"])
    value = ti.xcom_pull(task_ids="merge")
    assert (value["base_snapshot_id"], value["snapshot_id"]) == (base, made.snapshot_id)
    assert value["metrics"]["updated"] == 2
    assert value["snapshot_id"] > EXACT < base
    (event,) = asset_events(run)
    assert event.extra["snapshot_id"] == made.snapshot_id
    page = ti.xcom_pull(task_ids="merge", key="_link_merge_snapshot")
    assert page == f"https://lake.example/orders/{made.snapshot_id}"
    stored = read_result(submitter.request, {})
    assert stored is not None, "a later try finds the result where a job leaves it"
    assert stored.new_snapshot_id == made.snapshot_id
    notes = sorted(path.name for path in workspace.glob("_operations/*.base"))
    assert notes == ["other.base"], "nobody needs the base of an operation with a result"
