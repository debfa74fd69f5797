"""Recipe: replace a day, each day and for a backfill. See docs/recipes/daily-overwrite.md."""

from __future__ import annotations

from datetime import datetime

from airflow.sdk import DAG, CronDataIntervalTimetable, Param

from airflow_provider_merge.operators.create_table import CreateTableOperator, column
from airflow_provider_merge.operators.insert_overwrite import InsertOverwriteOperator
from airflow_provider_merge.operators.sources import file_source, sql_source

SALES = file_source(
    "{{ params.landing }}/sales/{{ run_partition('day') }}",
    "csv",
    options={"header": True},
    schema="shop STRING, amount DECIMAL(10, 2)",
)

with DAG(
    "daily_overwrite",
    schedule=CronDataIntervalTimetable("@daily", timezone="UTC"),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    params={
        "landing": "/landing",
        "day": Param(None, type=["null", "string"], format="date", title="Day to replace"),
    },
    default_args={"catalog_conn_id": "paimon_default", "target": "shop.revenue"},
) as dag:
    create = CreateTableOperator(
        task_id="create",
        columns=[
            column("shop", "STRING"),
            column("revenue", "DECIMAL(20, 2)"),
            column("day", "DATE"),
        ],
        partition_keys=["day"],
    )
    overwrite = InsertOverwriteOperator(
        task_id="overwrite",
        mode="static",
        partition={"day": "{{ run_partition('day') }}"},
        source=sql_source(
            "SELECT shop, sum(amount) AS revenue FROM sales GROUP BY shop",
            sources={"sales": SALES},
        ),
        # A backfill's own runs and today's run may overlap; each replaces its own day.
        max_active_tis_per_dag=3,
        retries=2,
    )
    create >> overwrite
