"""A DELETE of the orders of customers who asked to be forgotten.

The DAG changes the table that ``merge_orders`` creates. It reads the CSV files of the folder
``<landing>/forget/<day>``; the parameter ``landing`` is a path that Spark can read, ``day`` is
chosen when the DAG is triggered; the default is the day of the run's logical date. It needs the
connections ``paimon_default`` (the warehouse) and ``spark_default``.
"""

from __future__ import annotations

from datetime import datetime

from airflow.sdk import DAG, Param

from airflow_provider_merge.operators.delete_from import DeleteFromOperator
from airflow_provider_merge.operators.sources import file_source

FORGET = file_source(
    "{{ params.landing }}/forget/{{ run_partition('day') }}",
    "csv",
    options={"header": True},
    schema="customer STRING",
)

with DAG(
    "forget_customers",
    schedule=None,
    start_date=datetime(2024, 1, 1),
    params={
        "landing": "/landing",
        "day": Param(None, type=["null", "string"], format="date", title="Day of the files"),
    },
) as dag:
    forget = DeleteFromOperator(
        task_id="forget_customers",
        target="shop.orders",
        where="customer IN (SELECT customer FROM forget)",
        sources={"forget": FORGET},
    )
