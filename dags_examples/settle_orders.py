"""An UPDATE that settles the orders that a file of payments names.

The DAG changes the table that ``merge_orders`` creates. It reads the CSV files of the folder
``<landing>/payments/<day>``; the parameter ``landing`` is a path that Spark can read, ``day`` is
chosen when the DAG is triggered; the default is the day of the run's logical date. It needs the
connections ``paimon_default`` (the warehouse) and ``spark_default``.
"""

from __future__ import annotations

from datetime import datetime

from airflow.sdk import DAG, Param

from airflow_provider_merge.operators.sources import file_source
from airflow_provider_merge.operators.update import UpdateOperator

PAYMENTS = file_source(
    "{{ params.landing }}/payments/{{ run_partition('day') }}",
    "csv",
    options={"header": True},
    schema="order_id BIGINT, paid DECIMAL(10, 2)",
)

with DAG(
    "settle_orders",
    schedule=None,
    start_date=datetime(2024, 1, 1),
    params={
        "landing": "/landing",
        "day": Param(None, type=["null", "string"], format="date", title="Day of the files"),
    },
) as dag:
    settle = UpdateOperator(
        task_id="settle_orders",
        sql="""
            UPDATE shop.orders AS o
            SET status = 'settled', settled_on = DATE '{{ run_partition('day') }}'
            WHERE o.status = 'open'
              AND EXISTS (SELECT 1 FROM payments AS p
                          WHERE p.order_id = o.order_id AND p.paid >= o.amount)
        """,
        sources={"payments": PAYMENTS},
    )
