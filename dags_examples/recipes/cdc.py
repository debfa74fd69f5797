"""Recipe: follow a table of a database by its change events. See docs/recipes/cdc.md."""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.sdk import DAG

from airflow_provider_merge.operators.create_table import CreateTableOperator, column
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import cdc_source, new_files_source

# What a Kafka Connect sink lands, as Debezium's PostgreSQL connector wrote it.
EVENTS = new_files_source("{{ params.landing }}/customers", "json", start="all", max_files=1_000)

with DAG(
    "cdc",
    schedule=timedelta(minutes=15),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    params={"landing": "/landing"},
    default_args={
        "catalog_conn_id": "paimon_default",
        "target": "shop.customers",
        "retries": 3,
        "retry_delay": timedelta(minutes=5),
    },
) as dag:
    create = CreateTableOperator(
        task_id="create",
        columns=[
            column("id", "BIGINT", nullable=False),
            column("name", "STRING"),
            column("balance", "DECIMAL(12, 2)"),
            column("biography", "STRING"),
            column("changed_at", "TIMESTAMP"),
            column("lsn", "BIGINT"),
            column("is_deleted", "BOOLEAN"),
        ],
    )
    follow = MergeIntoOperator(
        task_id="follow",
        source=cdc_source(
            EVENTS,
            format="debezium",
            keys=["id"],
            schema="id BIGINT, name STRING, balance DECIMAL(12, 2), biography STRING, "
            "changed_at TIMESTAMP",
            encodings={"balance": "Decimal"},
            sequence={"lsn": "source.lsn"},
            deleted="is_deleted",
            unchanged=["biography"],
        ),
    )
    create >> follow
