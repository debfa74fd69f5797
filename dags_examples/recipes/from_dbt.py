"""Recipe: three incremental dbt models as tasks. See docs/recipes/from-dbt.md."""

from __future__ import annotations

from datetime import datetime

from airflow.sdk import DAG, CronDataIntervalTimetable, Param

from airflow_provider_merge.operators.create_table import CreateTableOperator, column
from airflow_provider_merge.operators.insert_overwrite import InsertOverwriteOperator
from airflow_provider_merge.operators.merge_into import MergeIntoOperator

with DAG(
    "from_dbt",
    schedule=CronDataIntervalTimetable("@daily", timezone="UTC"),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    params={"day": Param(None, type=["null", "string"], format="date", title="Day to build")},
    default_args={"catalog_conn_id": "paimon_default"},
) as dag:
    create_customers = CreateTableOperator(
        task_id="create_customers",
        target="marts.customers",
        columns=[
            column("customer", "STRING", nullable=False),
            column("orders", "BIGINT"),
            column("last_order", "TIMESTAMP"),
        ],
    )
    # materialized='incremental', incremental_strategy='merge', unique_key='customer'
    customers = MergeIntoOperator(task_id="customers", sql="sql/customers.sql")

    create_days = CreateTableOperator(
        task_id="create_days",
        target="marts.order_days",
        columns=[
            column("orders", "BIGINT"),
            column("amount", "DECIMAL(20, 2)"),
            column("day", "DATE"),
        ],
        partition_keys=["day"],
    )
    # incremental_strategy='insert_overwrite', partition_by=['day']; microbatch, a day a run
    days = InsertOverwriteOperator(
        task_id="order_days",
        sql="sql/order_days.sql",
        mode="dynamic",
        expected_partitions=[{"day": "{{ run_partition('day') }}"}],
    )
    create_customers >> customers
    create_days >> days
