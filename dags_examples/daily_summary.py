"""Three DAGs that replace partitions of ``flights.daily_summary`` from ``flights.flight``.

``daily_summary`` replaces a month when it is over. ``daily_summary_day`` replaces a day and is
meant for backfills. ``daily_summary_repair`` replaces the month that is chosen in the trigger form;
by default it is a dry run. A run replaces the partition that it is for and nothing else, however
often it is repeated.

``flights_merge`` creates ``flights.flight``. The DAGs need the connections ``paimon_default`` (the
warehouse) and ``spark_default``.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from airflow.sdk import DAG, CronDataIntervalTimetable, Param

from airflow_provider_merge.operators.create_table import CreateTableOperator, column
from airflow_provider_merge.operators.insert_overwrite import InsertOverwriteOperator
from airflow_provider_merge.operators.sources import sql_source, table_source

TABLE = "flights.daily_summary"
COLUMNS = [
    column("month", "STRING", nullable=False, comment="such as 2013-01"),
    column("flight_date", "DATE", nullable=False),
    column("origin", "STRING", nullable=False),
    column("flights", "BIGINT"),
    column("departed", "BIGINT"),
    column("mean_dep_delay", "DOUBLE", comment="minutes"),
    column("mean_arr_delay", "DOUBLE", comment="minutes"),
]

SUMMARY = """
    SELECT flight_date, origin, count(*) AS flights, count(dep_time) AS departed,
           avg(dep_delay) AS mean_dep_delay, avg(arr_delay) AS mean_arr_delay
    FROM flight
    WHERE {where}
    GROUP BY flight_date, origin
"""
MONTH = "{{ run_partition('month')[:7] }}"
DAY = "{{ run_partition('day') }}"
IN_MONTH = f"flight_date >= DATE '{MONTH}-01' AND flight_date < add_months(DATE '{MONTH}-01', 1)"
ON_DAY = f"flight_date = DATE '{DAY}'"
DAY_PARTITION = {"month": "{{ run_partition('day')[:7] }}", "flight_date": DAY}


def summary(where: str) -> dict[str, Any]:
    """The summaries of some flights; the month comes from the partition that is replaced."""
    query = SUMMARY.format(where=where)
    return sql_source(query, sources={"flight": table_source("flights.flight")})


def create_table() -> CreateTableOperator:
    """The task that creates the table if it does not exist."""
    return CreateTableOperator(
        task_id="create_table",
        target=TABLE,
        columns=COLUMNS,
        partition_keys=["month", "flight_date"],
    )


with DAG(
    "daily_summary",
    description="Replaces the summaries of a month when it is over",
    schedule=CronDataIntervalTimetable("@monthly", timezone="UTC"),
    start_date=datetime(2013, 1, 1),
    catchup=False,
    max_active_runs=1,
    tags=["overwrite", "paimon", "example"],
    doc_md=__doc__,
) as monthly:
    create_table() >> InsertOverwriteOperator(
        task_id="overwrite_month",
        target=TABLE,
        mode="static",
        partition={"month": MONTH},
        source=summary(IN_MONTH),
        by_name=True,
        order_by=["origin"],
    )

with DAG(
    "daily_summary_day",
    description="Replaces the summaries of a day; for backfills",
    schedule=CronDataIntervalTimetable("@daily", timezone="UTC"),
    start_date=datetime(2013, 1, 1),
    catchup=False,
    tags=["overwrite", "backfill", "paimon", "example"],
    doc_md=__doc__,
) as backfill:
    create_table() >> InsertOverwriteOperator(
        task_id="overwrite_day",
        target=TABLE,
        mode="static",
        partition=DAY_PARTITION,
        source=summary(ON_DAY),
        by_name=True,
        # A backfill has its own limit of runs; this limit applies to all runs of the DAG.
        max_active_tis_per_dag=3,
        retries=2,
    )

with DAG(
    "daily_summary_repair",
    description="Replaces the summaries of a month that is chosen in the trigger form",
    schedule=None,
    start_date=datetime(2013, 1, 1),
    tags=["overwrite", "paimon", "example"],
    params={
        "month": Param(
            "2013-01-01",
            type="string",
            format="date",
            title="Month to replace",
            description="Any day of the month.",
        ),
        "mode": Param(
            "dynamic",
            type="string",
            enum=["dynamic", "static"],
            values_display={
                "dynamic": "stay as they are (dynamic)",
                "static": "are cleared (static)",
            },
            title="Days that have no flights any more",
            description="Days that have flights are replaced in any case.",
        ),
        "dry_run": Param(
            True,
            type="boolean",
            title="Dry run",
            description="Only report what would change. Nothing is stored.",
        ),
    },
    doc_md=__doc__,
) as repair:
    InsertOverwriteOperator(
        task_id="overwrite_month",
        target=TABLE,
        mode="{{ params.mode }}",
        partition={"month": MONTH},
        source=summary(IN_MONTH),
        by_name=True,
        order_by=["origin"],
        dry_run="{{ params.dry_run }}",
    )
