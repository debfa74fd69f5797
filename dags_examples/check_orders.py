"""Checks of the orders that ``merge_orders`` has merged, and a report of the unpaid ones.

The first task fails if an order occurs twice or has a negative amount. Then the open orders go to
files: the parameter ``reports`` is a folder that Spark can write to. The last task prints where
they are. It needs the connections ``paimon_default`` (the warehouse) and ``spark_default``.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_merge.operators.query import QueryOperator

with DAG(
    "check_orders",
    schedule=None,
    start_date=datetime(2024, 1, 1),
    params={"reports": "/reports"},
) as dag:
    check = QueryOperator(
        task_id="check_orders",
        sql="""
            SELECT count(*) = count(DISTINCT order_id) AS ids_are_unique,
                   count_if(amount < 0) = 0 AS no_negative_amount
            FROM shop.orders
        """,
        check="all_true",
    )
    report = QueryOperator(
        task_id="report_open_orders",
        sql="SELECT order_id, customer, amount FROM shop.orders WHERE status = 'open'",
        output_path="{{ params.reports }}/open_orders",
        output_format="csv",
    )

    @task
    def announce(found: dict[str, Any]) -> None:
        """Say where the report is."""
        print(f"{found['row_count']} open orders: {found['location']}")

    check >> report
    announce(report.output)
