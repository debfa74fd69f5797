"""Nightly maintenance of a table: a tag, a dry run that waits for approval, expiry, orphan files.

The DAG maintains the table that ``merge_orders`` creates. Tags keep the state of each night for 30
days. Older snapshots expire once somebody has approved the result of the dry run, on the task's
page in Airflow's UI. By then more snapshots may be old enough; no more expire than were approved.
It needs the connections ``paimon_default`` (the warehouse) and ``spark_default``.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG, task

from airflow_provider_merge.operators.expire_snapshots import ExpireSnapshotsOperator
from airflow_provider_merge.operators.remove_orphan_files import RemoveOrphanFilesOperator
from airflow_provider_merge.operators.tags import CreateTagOperator, DeleteTagOperator

LIMITS = {"retain_min": 10, "older_than": "7 d"}
PREVIEWED = "{{ ti.xcom_pull(task_ids='preview')['snapshots'] }}"
PREVIEW = """
{%- set found = ti.xcom_pull(task_ids="preview") -%}
{{ found["snapshots"] }} snapshots of {{ found["target"] }} would expire, and with them
{{ found["data_files"] }} data files; {{ found["bytes_removed"] }} bytes in all.
{% for each in found["kept"] %}
- kept for {{ each["by"] }}: {{ each["snapshots"] }} snapshots, {{ each["files"] }} data files
{%- endfor %}
"""

with DAG(
    "table_care",
    schedule="@daily",
    start_date=datetime(2024, 1, 1),
    catchup=False,
    max_active_runs=1,
    default_args={"target": "shop.orders", "retries": 1},
) as dag:
    tag = CreateTagOperator(
        task_id="tag", tag="nightly-{{ ds }}", retention="30 d", if_not_exists=True
    )
    old_tags = DeleteTagOperator(task_id="old_tags", expired=True)
    preview = ExpireSnapshotsOperator(task_id="preview", dry_run=True, **LIMITS)

    @task.short_circuit(ignore_downstream_trigger_rules=False)
    def is_anything_old(found):
        """Skip the approval if nothing would expire."""
        return found["snapshots"] > 0

    approval = ApprovalOperator(
        task_id="approval",
        subject="Expire snapshots of shop.orders?",
        body=PREVIEW,
        response_timeout=timedelta(hours=12),
    )
    # A retry would count again. The next night finishes what was interrupted.
    expire = ExpireSnapshotsOperator(task_id="expire", max_deletes=PREVIEWED, retries=0, **LIMITS)
    orphans = RemoveOrphanFilesOperator(
        task_id="orphans", older_than="2 d", trigger_rule="none_failed"
    )

    tag >> old_tags >> preview
    is_anything_old(preview.output) >> approval >> expire >> orphans
