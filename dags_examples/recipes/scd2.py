"""Recipe: every version of a customer (SCD2). See docs/recipes/scd2.md."""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.sdk import DAG

from airflow_provider_merge.operators.create_table import CreateTableOperator, column
from airflow_provider_merge.operators.scd2 import Scd2Operator
from airflow_provider_merge.operators.sources import new_files_source

CHANGES = new_files_source(
    "{{ params.landing }}/crm",
    "csv",
    start="all",
    options={"header": True},
    schema="customer BIGINT, city STRING, plan STRING, is_deleted BOOLEAN, changed_at TIMESTAMP",
)

with DAG(
    "scd2",
    schedule=timedelta(hours=1),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    params={"landing": "/landing"},
    default_args={
        "catalog_conn_id": "paimon_default",
        "target": "crm.customer_versions",
        "retries": 3,
        "retry_delay": timedelta(minutes=5),
    },
) as dag:
    create = CreateTableOperator(
        task_id="create",
        columns=[
            column("customer", "BIGINT", nullable=False),
            column("city", "STRING"),
            column("plan", "STRING"),
            column("valid_from", "TIMESTAMP", nullable=False),
            column("valid_to", "TIMESTAMP"),
            column("is_current", "BOOLEAN"),
        ],
    )
    versions = Scd2Operator(
        task_id="versions",
        source=CHANGES,
        keys=["customer"],
        current="is_current",
        effective="changed_at",
        delete_marker="is_deleted",
        hard_deletes="close",
        late="insert_between",
    )
    create >> versions
