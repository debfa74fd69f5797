"""Recipe: delete a person's rows for good. See docs/recipes/forget-for-good.md."""

from __future__ import annotations

from datetime import datetime

from airflow.sdk import DAG, CronDataIntervalTimetable, Param

from airflow_provider_merge.operators.compact import CompactOperator
from airflow_provider_merge.operators.delete_from import DeleteFromOperator
from airflow_provider_merge.operators.expire_snapshots import ExpireSnapshotsOperator
from airflow_provider_merge.operators.remove_orphan_files import RemoveOrphanFilesOperator
from airflow_provider_merge.operators.sources import file_source

REQUESTS = file_source(
    "{{ params.landing }}/forget",
    "csv",
    options={"header": True},
    schema="customer STRING",
)

with DAG(
    "forget_for_good",
    schedule=CronDataIntervalTimetable("@daily", timezone="UTC"),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    params={
        "landing": "/landing",
        "keep": Param("1 d", type="string", title="How long old snapshots stay readable"),
    },
    default_args={"catalog_conn_id": "paimon_default", "target": "shop.orders", "retries": 1},
) as dag:
    # The rows are gone for everybody who reads the table from now on.
    delete = DeleteFromOperator(
        task_id="delete",
        where="customer IN (SELECT customer FROM requests)",
        sources={"requests": REQUESTS},
    )
    # Files in which the rows are only marked as deleted are written again without them.
    compact = CompactOperator(task_id="compact", mode="full")
    # Snapshots that still show the rows go, and with them the files that only they need.
    expire = ExpireSnapshotsOperator(
        task_id="expire", older_than="{{ params.keep }}", retain_min=1, retain_max=1
    )
    # So do files that killed jobs have left behind.
    orphans = RemoveOrphanFilesOperator(task_id="orphans", older_than="{{ params.keep }}")
    delete >> compact >> expire >> orphans
