"""A merge that waits for approval, and then does exactly what was approved, or nothing.

``preview`` is the dry run. The question shows its counts, and the guards that would not hold: then
``merge`` would fail, whatever is answered. A person approves it in Airflow's UI. ``merge`` gets the
preview's ticket: if the statement, the files of the source, or what the statement reads of the
table have changed meanwhile, it ends with APPROVAL_STALE. What others commit elsewhere in the table
does not matter. A guard holds for both. It needs the connections ``paimon_default`` (or
``iceberg_default`` as ``catalog_conn_id``) and ``spark_default``, the table ``shop.orders``, and
CSV files in ``/landing/orders``.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG

from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import file_source

UPDATES = file_source("/landing/orders", "csv", schema="id BIGINT, amount DOUBLE")
MERGE = """
MERGE INTO shop.orders AS t USING updates AS s ON t.id = s.id
WHEN MATCHED AND s.amount IS NULL THEN DELETE
WHEN MATCHED THEN UPDATE SET amount = s.amount
WHEN NOT MATCHED THEN INSERT *
"""
QUESTION = """
{%- set found = ti.xcom_pull(task_ids="preview") -%}
{{ found["metrics"]["inserted"] }} rows would be inserted, {{ found["metrics"]["updated"] }}
updated and {{ found["metrics"]["deleted"] }} deleted in {{ found["target"] }}.
{% for guard in found["metrics"]["guards"] if not guard["held"] %}
**It would fail**: {{ guard["name"] }}, {{ guard["seen"] }} where {{ guard["limit"] }} is allowed.
{% endfor %}
[What it would do]({{ ti.xcom_pull(task_ids="preview", key="_link_merge_table") }})
"""

with DAG(
    "approved_merge",
    schedule=None,
    start_date=datetime(2024, 1, 1),
    catchup=False,
    max_active_runs=1,
    default_args={
        "sql": MERGE,
        "sources": {"updates": UPDATES},
        "max_deleted_rows": 100,
    },
) as dag:
    preview = MergeIntoOperator(task_id="preview", dry_run=True, preview_rows=20)
    approval = ApprovalOperator(
        task_id="approval",
        subject="Merge into shop.orders?",
        body=QUESTION,
        response_timeout=timedelta(hours=12),
    )
    merge = MergeIntoOperator(task_id="merge", approved="{{ ti.xcom_pull('preview') }}")

    preview >> approval >> merge
