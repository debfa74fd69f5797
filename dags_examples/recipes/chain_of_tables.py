"""Recipe: landed files to a table of days, by what changed. See docs/recipes/chain-of-tables.md."""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.sdk import DAG

from airflow_provider_merge.operators.clauses import when_matched, when_not_matched
from airflow_provider_merge.operators.create_table import CreateTableOperator, column
from airflow_provider_merge.operators.insert_into import InsertIntoOperator
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import (
    changes_source,
    deduplicate,
    new_files_source,
    sql_source,
    table_source,
)

LANDED = new_files_source(
    "{{ params.landing }}/meters",
    "csv",
    start="all",
    options={"header": True},
    schema="meter BIGINT, kwh DECIMAL(12, 3), read_at TIMESTAMP, sent_at TIMESTAMP",
)
# A meter that gets no answer sends again; of several readings of a time, the last one counts.
READINGS = deduplicate(
    sql_source(
        "SELECT meter, kwh, read_at, sent_at, CAST(read_at AS DATE) AS day "
        "FROM arrived WHERE _change_type = 'insert'",
        sources={"arrived": changes_source("grid.arrived", start="all")},
    ),
    by=["meter", "read_at"],
    order_by=["sent_at"],
)
# Of the days that changed, also long ago, all readings.
DAYS = sql_source(
    "SELECT day, count(DISTINCT meter) AS meters, CAST(sum(kwh) AS DECIMAL(18, 3)) AS kwh "
    "FROM readings WHERE day IN (SELECT day FROM changed) GROUP BY day",
    sources={
        "readings": table_source("grid.readings"),
        "changed": changes_source("grid.readings", start="all"),
    },
)

with DAG(
    "chain_of_tables",
    schedule=timedelta(hours=1),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    params={"landing": "/landing"},
    default_args={
        "catalog_conn_id": "paimon_default",
        "retries": 3,
        "retry_delay": timedelta(minutes=5),
    },
) as dag:
    reading = [
        column("meter", "BIGINT", nullable=False),
        column("kwh", "DECIMAL(12, 3)"),
        column("read_at", "TIMESTAMP"),
        column("sent_at", "TIMESTAMP"),
    ]
    create_arrived = CreateTableOperator(
        task_id="create_arrived", target="grid.arrived", columns=reading
    )
    create_readings = CreateTableOperator(
        task_id="create_readings",
        target="grid.readings",
        columns=[*reading, column("day", "DATE")],
        partition_keys=["day"],
    )
    create_days = CreateTableOperator(
        task_id="create_days",
        target="grid.days",
        columns=[
            column("day", "DATE"),
            column("meters", "BIGINT"),
            column("kwh", "DECIMAL(18, 3)"),
        ],
    )
    arrive = InsertIntoOperator(task_id="arrive", target="grid.arrived", source=LANDED)
    clean = MergeIntoOperator(
        task_id="clean",
        target="grid.readings",
        source=READINGS,
        on="t.day = s.day AND t.meter = s.meter AND t.read_at = s.read_at",
        when=[
            when_matched("s.sent_at > t.sent_at").update_all(),
            when_not_matched().insert_all(),
        ],
    )
    summarise = MergeIntoOperator(
        task_id="summarise",
        target="grid.days",
        source=DAYS,
        on="t.day = s.day",
        when=[when_matched().update_all(), when_not_matched().insert_all()],
    )
    [create_arrived, create_readings, create_days] >> arrive >> clean >> summarise
