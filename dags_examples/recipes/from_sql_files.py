"""Recipe: a SQL file of several statements as a task. See docs/recipes/from-sql-files.md."""

from __future__ import annotations

from datetime import datetime

from airflow.sdk import DAG, CronDataIntervalTimetable, Param

from airflow_provider_merge.operators.sources import file_source
from airflow_provider_merge.operators.statements import StatementsOperator

LANDED = file_source(
    "{{ params.landing }}/sales-lines",
    "csv",
    options={"header": True},
    schema="sale_id BIGINT, product STRING, amount DECIMAL(10, 2), day DATE",
)

with DAG(
    "from_sql_files",
    schedule=CronDataIntervalTimetable("@daily", timezone="UTC"),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    params={
        "landing": "/landing",
        "day": Param(None, type=["null", "string"], format="date", title="Day to run"),
    },
    default_args={"catalog_conn_id": "paimon_default"},
) as dag:
    nightly = StatementsOperator(
        task_id="nightly", sql="sql/nightly.sql", database="shop", sources={"landed": LANDED}
    )
