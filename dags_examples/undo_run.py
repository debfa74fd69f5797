"""Takes back what a run committed, after somebody has approved the preview.

Trigger it with the ids of the DAG and of the run. The preview says what would be taken back from
which table, and what is in the way; the approval is on its task's page in Airflow's UI. It needs
the connections ``paimon_default`` (the warehouse) and ``spark_default``.
"""

from __future__ import annotations

from datetime import datetime

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG, Param

from airflow_provider_merge.operators.undo_run import UndoRunOperator

RUN = {"undo_dag_id": "{{ params.dag }}", "undo_run_id": "{{ params.run }}"}
PREVIEW = """
{% for each in ti.xcom_pull(task_ids="preview")["tables"] %}
- {{ each["table"] }}: {{ each["outcome"] }}, {{ each["commits"] | length }} snapshots;
  {{ each["inserted"] }} rows go, {{ each["deleted"] }} come back, {{ each["updated"] }} get their
  former values. {{ each["reason"] }}
{%- endfor %}
"""

with DAG(
    "undo_run",
    schedule=None,
    start_date=datetime(2024, 1, 1),
    params={"dag": Param("merge_orders", type="string"), "run": Param("", type="string")},
    default_args={"retries": 1},
) as dag:
    preview = UndoRunOperator(task_id="preview", dry_run=True, **RUN)
    approval = ApprovalOperator(task_id="approval", subject="Undo this run?", body=PREVIEW)
    undo = UndoRunOperator(task_id="undo", approved="{{ ti.xcom_pull('preview') }}", **RUN)
    preview >> approval >> undo
