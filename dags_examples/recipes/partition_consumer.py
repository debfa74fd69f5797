"""Recipe: one run for each partition that changed. See docs/recipes/changed-partitions.md."""

from __future__ import annotations

from datetime import datetime

from airflow.sdk import DAG, Param, PartitionedAssetTimetable

from airflow_provider_merge.assets import table_asset
from airflow_provider_merge.operators.clauses import when_matched, when_not_matched
from airflow_provider_merge.operators.create_table import CreateTableOperator, column
from airflow_provider_merge.operators.insert_overwrite import InsertOverwriteOperator
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import file_source, sql_source, table_source

CATALOG = "paimon_default"
BOOKINGS = file_source(
    "{{ params.landing }}/bookings/{{ run_partition('batch') }}",
    "csv",
    options={"header": True},
    schema="booking_id BIGINT, guests INT, day DATE",
)

with DAG(
    "bookings",
    schedule=None,
    start_date=datetime(2026, 1, 1),
    params={"landing": "/landing", "batch": Param("1", type="string", title="Batch of files")},
    default_args={"catalog_conn_id": CATALOG},
) as producer:
    create = CreateTableOperator(
        task_id="create",
        target="hotel.bookings",
        columns=[column("booking_id", "BIGINT"), column("guests", "INT"), column("day", "DATE")],
        partition_keys=["day"],
    )
    merge = MergeIntoOperator(
        task_id="merge",
        target="hotel.bookings",
        source=BOOKINGS,
        on="t.day = s.day AND t.booking_id = s.booking_id",
        when=[when_matched().update_all(), when_not_matched().insert_all()],
        # An event for each day whose rows this merge changed, with the day as its key.
        emit_partition_keys=True,
    )
    create >> merge

with DAG(
    "guests_by_day",
    # A run for each day that changed; late rows of an old day start that day's run again.
    schedule=PartitionedAssetTimetable(assets=table_asset(CATALOG, "hotel.bookings")),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    default_args={"catalog_conn_id": CATALOG},
) as consumer:
    create_summary = CreateTableOperator(
        task_id="create",
        target="hotel.guests_by_day",
        columns=[column("guests", "BIGINT"), column("day", "DATE")],
        partition_keys=["day"],
    )
    summarise = InsertOverwriteOperator(
        task_id="summarise",
        target="hotel.guests_by_day",
        mode="static",
        partition={"day": "{{ run_partition() }}"},
        source=sql_source(
            "SELECT sum(guests) AS guests FROM bookings WHERE day = DATE '{{ run_partition() }}'",
            sources={"bookings": table_source("hotel.bookings")},
        ),
    )
    create_summary >> summarise
