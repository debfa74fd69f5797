"""Recipe: hours by UTC, days by local time. See docs/recipes/hourly-and-local-time.md."""

from __future__ import annotations

from datetime import datetime

from airflow.sdk import DAG, CronDataIntervalTimetable

from airflow_provider_merge.operators.create_table import CreateTableOperator, column
from airflow_provider_merge.operators.insert_overwrite import InsertOverwriteOperator
from airflow_provider_merge.operators.sources import file_source, sql_source, table_source

CATALOG = "paimon_default"
HOUR = "{{ data_interval_start.in_timezone('UTC').strftime('%Y-%m-%dT%H') }}"
VISITS = file_source(
    f"{{{{ params.landing }}}}/visits/{HOUR}",
    "csv",
    options={"header": True},
    schema="at TIMESTAMP, page STRING",
)

with DAG(
    "visits_hourly",
    schedule=CronDataIntervalTimetable("@hourly", timezone="UTC"),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    params={"landing": "/landing"},
    default_args={"catalog_conn_id": CATALOG},
) as hourly:
    create_visits = CreateTableOperator(
        task_id="create",
        target="web.visits",
        columns=[
            column("at", "TIMESTAMP"),
            column("page", "STRING"),
            column("hour", "STRING", comment="in UTC, such as 2026-10-25T00"),
        ],
        partition_keys=["hour"],
    )
    replace_hour = InsertOverwriteOperator(
        task_id="replace_hour",
        target="web.visits",
        mode="static",
        # Hours are named in UTC, where none is missing and none comes twice.
        partition={"hour": HOUR},
        source=VISITS,
        retries=2,
    )
    create_visits >> replace_hour

with DAG(
    "visits_by_day",
    schedule=CronDataIntervalTimetable("@daily", timezone="Europe/Berlin"),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    default_args={"catalog_conn_id": CATALOG},
) as daily:
    create_report = CreateTableOperator(
        task_id="create",
        target="web.visits_by_day",
        columns=[column("page", "STRING"), column("visits", "BIGINT"), column("day", "DATE")],
        partition_keys=["day"],
    )
    replace_day = InsertOverwriteOperator(
        task_id="replace_day",
        target="web.visits_by_day",
        mode="static",
        # The day that began in Berlin; {{ ds }} names the day in UTC.
        partition={"day": "{{ run_partition('day') }}"},
        source=sql_source(
            "SELECT page, count(*) AS visits FROM visits "
            "WHERE to_date(at) = DATE '{{ run_partition('day') }}' GROUP BY page",
            sources={"visits": table_source("web.visits")},
        ),
        # Dates are those of Berlin; without it they would be those of UTC.
        session_time_zone="Europe/Berlin",
    )
    create_report >> replace_day
