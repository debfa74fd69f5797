"""Weekly care for all tables of a Paimon and an Iceberg catalog, in one Spark application.

``lakehouse_care`` plans from metadata what to compact and to expire, waits until somebody approves
the plan on the task's page in Airflow's UI, and does it, what is worth most first. It needs the
connections ``paimon_default``, ``iceberg_default`` and ``spark_default``.
"""

from __future__ import annotations

from datetime import datetime

from airflow.sdk import DAG

from airflow_provider_merge.operators.lakehouse_care import lakehouse_care

with DAG(
    "lakehouse_care",
    schedule="@weekly",
    start_date=datetime(2024, 1, 1),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 1},
) as dag:
    lakehouse_care(
        more_catalogs=["iceberg_default"],
        exclude="*.tmp_*",
        older_than="7 d",
        max_bytes="500 gb",
        max_seconds=4 * 3600,
        max_parallel=4,
    )
