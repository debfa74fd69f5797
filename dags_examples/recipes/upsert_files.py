"""Recipe: upsert the files that land each day. See docs/recipes/upsert-files.md."""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.sdk import DAG, CronDataIntervalTimetable, Param

from airflow_provider_merge.operators.clauses import when_matched, when_not_matched
from airflow_provider_merge.operators.create_table import CreateTableOperator, column
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import file_source, sql_source

ORDERS = file_source(
    "{{ params.landing }}/orders/{{ run_partition('day') }}",
    "csv",
    options={"header": True},
    schema="order_id BIGINT, customer STRING, amount DECIMAL(10, 2), cancelled BOOLEAN, "
    "changed_at TIMESTAMP",
)
# A file may have several versions of an order: the last one counts.
NEWEST = """
SELECT * EXCEPT (age) FROM (
    SELECT *, row_number() OVER (PARTITION BY order_id ORDER BY changed_at DESC) AS age FROM orders
) WHERE age = 1
"""

with DAG(
    "upsert_files",
    schedule=CronDataIntervalTimetable("@daily", timezone="UTC"),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    params={
        "landing": "/landing",
        "day": Param(None, type=["null", "string"], format="date", title="Day of the files"),
    },
    default_args={
        "catalog_conn_id": "paimon_default",
        "target": "shop.orders",
        # Files that are not there yet are waited for: the task tries again.
        "retries": 3,
        "retry_delay": timedelta(minutes=10),
    },
) as dag:
    create = CreateTableOperator(
        task_id="create",
        columns=[
            column("order_id", "BIGINT", nullable=False),
            column("customer", "STRING"),
            column("amount", "DECIMAL(10, 2)"),
            column("changed_at", "TIMESTAMP"),
        ],
    )
    upsert = MergeIntoOperator(
        task_id="upsert",
        source=sql_source(NEWEST, sources={"orders": ORDERS}),
        on="t.order_id = s.order_id",
        when=[
            # A day that is run again after later ones must not bring old rows back.
            when_matched("s.changed_at > t.changed_at AND s.cancelled").delete(),
            when_matched("s.changed_at > t.changed_at").update_all(),
            when_not_matched("NOT s.cancelled").insert_all(),
        ],
    )
    create >> upsert
