"""A day's orders, merged into an Apache Iceberg table that is partitioned by day.

The DAG creates the table ``shop.orders``, of version 2 and merge-on-read, then merges the CSV files
of the folder ``<landing>/orders/<day>``; the parameter ``landing`` is a path that Spark can read,
``day`` is chosen when the DAG is triggered; the default is the day of the run's logical date. It
needs the connections ``iceberg_default`` (the catalog, docs/connection.md) and ``spark_default``.
"""

from __future__ import annotations

from datetime import datetime

from airflow.sdk import DAG, Param

from airflow_provider_merge.operators.clauses import when_matched, when_not_matched
from airflow_provider_merge.operators.create_table import CreateTableOperator, column
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import file_source

with DAG(
    "iceberg_orders",
    schedule=None,
    start_date=datetime(2024, 1, 1),
    params={
        "landing": "/landing",
        "day": Param(None, type=["null", "string"], format="date", title="Day of the files"),
    },
    default_args={"catalog_conn_id": "iceberg_default", "target": "shop.orders"},
) as dag:
    create = CreateTableOperator(
        task_id="create_orders",
        columns=[
            column("order_id", "BIGINT", nullable=False),
            column("day", "DATE"),
            column("customer", "STRING"),
            column("amount", "DECIMAL(10, 2)"),
        ],
        partition_keys=["day"],
        table_options={"format-version": "2", "write.merge.mode": "merge-on-read"},
    )
    merge = MergeIntoOperator(
        task_id="iceberg_orders",
        source=file_source(
            "{{ params.landing }}/orders/{{ run_partition('day') }}",
            "csv",
            options={"header": True},
            schema="order_id BIGINT, day DATE, customer STRING, amount DECIMAL(10, 2), "
            "cancelled BOOLEAN",
        ),
        on="t.day = s.day AND t.order_id = s.order_id",
        when=[
            when_matched("s.cancelled").delete(),
            when_matched().update_all(),
            when_not_matched("NOT s.cancelled").insert_all(),
        ],
        retries=1,
    )
    create >> merge
