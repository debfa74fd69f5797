"""Recipe: check a day before anybody sees it. See docs/recipes/checked-load.md."""

from __future__ import annotations

from datetime import datetime

from airflow.sdk import DAG, CronDataIntervalTimetable, Param

from airflow_provider_merge.operators.clauses import (
    when_matched,
    when_not_matched,
    when_not_matched_by_source,
)
from airflow_provider_merge.operators.create_table import CreateTableOperator, column
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import file_source

PRICES = file_source(
    "{{ params.landing }}/prices/{{ run_partition('day') }}",
    "csv",
    options={"header": True},
    schema="item BIGINT, price DECIMAL(10, 2), unit STRING",
)

with DAG(
    "checked_load",
    schedule=CronDataIntervalTimetable("@daily", timezone="UTC"),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    params={
        "landing": "/landing",
        "day": Param(None, type=["null", "string"], format="date", title="Day of the files"),
    },
    default_args={"catalog_conn_id": "paimon_default", "target": "shop.prices"},
) as dag:
    create = CreateTableOperator(
        task_id="create",
        columns=[
            column("item", "BIGINT", nullable=False),
            column("price", "DECIMAL(10, 2)"),
            column("unit", "STRING"),
        ],
    )
    load = MergeIntoOperator(
        task_id="load",
        source=PRICES,
        on="t.item = s.item",
        when=[
            when_matched("t.price IS DISTINCT FROM s.price").update_all(),
            when_not_matched().insert_all(),
            when_not_matched_by_source().delete(),
        ],
        # An export that broke off has few rows, and would delete most items.
        min_source_rows=1,
        max_deleted_share="50%",
        checks=[
            {"column": "price", "not_null": True},
            {"column": "unit", "accepted_values": ["kg", "piece"]},
            {"column": "item", "unique": True, "on": "target"},
            {
                "name": "no price falls to less than half",
                "sql": "SELECT old.item, old.price AS was, new.price AS would_be FROM changes "
                "WHERE operation = 'update' AND new.price < old.price / 2",
            },
        ],
    )
    create >> load
