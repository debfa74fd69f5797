"""Yesterday's changes of orders, on a branch first: nobody reads them before they are checked.

``WriteAuditPublish`` begins a branch of ``shop.orders``, which ``merge_orders`` creates, merges the
files of the folder ``<landing>/updates/<day>`` there, checks the branch by two queries, and
publishes it: as one snapshot, if nobody else has changed the table meanwhile. If a check finds
rows, the run fails, and the branch stays. It needs the connections ``paimon_default`` and
``spark_default``; for an Iceberg table, give ``catalog_conn_id="iceberg_default"``.
"""

from __future__ import annotations

from datetime import datetime

from airflow.sdk import DAG

from airflow_provider_merge.operators.clauses import when_matched, when_not_matched
from airflow_provider_merge.operators.sources import file_source
from airflow_provider_merge.operators.statement_list import merge_into
from airflow_provider_merge.operators.write_audit_publish import WriteAuditPublish

with DAG(
    "audited_orders",
    schedule="@daily",
    start_date=datetime(2024, 1, 1),
    catchup=False,
    max_active_runs=1,
    params={"landing": "/landing"},
) as dag:
    WriteAuditPublish(
        "orders",
        statements=[
            merge_into(
                "merge",
                target="shop.orders",
                source=file_source(
                    "{{ params.landing }}/updates/{{ run_partition() }}",
                    "csv",
                    options={"header": True},
                    schema="order_id BIGINT, customer STRING, amount DECIMAL(10, 2)",
                ),
                on="t.order_id = s.order_id",
                when=[
                    when_matched().update({"amount": "s.amount"}),
                    when_not_matched().insert(
                        {"order_id": "s.order_id", "customer": "s.customer", "amount": "s.amount"}
                    ),
                ],
            )
        ],
        checks={
            "amounts": "SELECT order_id, amount FROM shop.orders WHERE amount < 0",
            "ids": "SELECT order_id FROM shop.orders GROUP BY order_id HAVING count(*) > 1",
        },
        retries=1,
    )
