"""A MERGE in a SQL file of its own, ``sql/merge_orders.sql``, on a day's updates.

The DAG creates the table ``shop.orders``, then merges the CSV files of the folder
``<landing>/updates/<day>``; the parameter ``landing`` is a path that Spark can read, ``day`` is
chosen when the DAG is triggered; the default is the day of the run's logical date. It needs the
connections ``paimon_default`` (the warehouse) and ``spark_default``.
"""

from __future__ import annotations

from datetime import datetime

from airflow.sdk import DAG, Param

from airflow_provider_merge.operators.create_table import CreateTableOperator, column
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import file_source

UPDATES = file_source(
    "{{ params.landing }}/updates/{{ run_partition('day') }}",
    "csv",
    options={"header": True},
    schema="order_id BIGINT, customer STRING, amount DECIMAL(10, 2), city STRING, zip STRING, "
    "cancelled BOOLEAN",
)

with DAG(
    "merge_orders",
    schedule=None,
    start_date=datetime(2024, 1, 1),
    params={
        "landing": "/landing",
        "day": Param(None, type=["null", "string"], format="date", title="Day of the files"),
    },
) as dag:
    create = CreateTableOperator(
        task_id="create_orders",
        target="shop.orders",
        columns=[
            column("order_id", "BIGINT", nullable=False),
            column("customer", "STRING"),
            column("amount", "DECIMAL(10, 2)"),
            column("status", "STRING"),
            column("settled_on", "DATE"),
            column("address", "STRUCT<city: STRING, zip: STRING>"),
        ],
    )
    merge = MergeIntoOperator(
        task_id="merge_orders",
        sql="sql/merge_orders.sql",
        sources={"updates": UPDATES},
    )
    create >> merge
