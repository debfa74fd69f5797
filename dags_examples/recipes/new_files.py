"""Recipe: upsert files as they land, each once. See docs/recipes/new-files.md."""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.sdk import DAG

from airflow_provider_merge.operators.clauses import when_matched, when_not_matched
from airflow_provider_merge.operators.create_table import CreateTableOperator, column
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import new_files_source, sql_source

READINGS = new_files_source(
    "{{ params.landing }}/readings",
    "csv",
    start="all",
    max_files=1_000,
    options={"header": True},
    schema="meter BIGINT, reading DECIMAL(12, 3), read_at TIMESTAMP",
)
# The new files may have several readings of a meter: the last one counts.
NEWEST = """
SELECT * EXCEPT (age) FROM (
    SELECT *, row_number() OVER (PARTITION BY meter ORDER BY read_at DESC) AS age FROM readings
) WHERE age = 1
"""

with DAG(
    "new_files",
    schedule=timedelta(minutes=15),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    params={"landing": "/landing"},
    default_args={
        "catalog_conn_id": "paimon_default",
        "target": "grid.meters",
        "retries": 3,
        "retry_delay": timedelta(minutes=5),
    },
) as dag:
    create = CreateTableOperator(
        task_id="create",
        columns=[
            column("meter", "BIGINT", nullable=False),
            column("reading", "DECIMAL(12, 3)"),
            column("read_at", "TIMESTAMP"),
        ],
    )
    upsert = MergeIntoOperator(
        task_id="upsert",
        source=sql_source(NEWEST, sources={"readings": READINGS}),
        on="t.meter = s.meter",
        when=[
            # A late file must not bring an old reading back.
            when_matched("s.read_at > t.read_at").update_all(),
            when_not_matched().insert_all(),
        ],
    )
    create >> upsert
