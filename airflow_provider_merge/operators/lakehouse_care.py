"""``lakehouse_care``: a plan for the tables of catalogs, approval by somebody, then the care."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from airflow.sdk import TaskGroup, task

from airflow_provider_merge.operators.table_care import TableCareOperator

_SUBJECT: Final = "Take care of the tables?"
_BODY: Final = """
{%- set plan = ti.xcom_pull(task_ids="TASK") -%}
Bytes to read: {{ "{:,}".format(plan["read"]) }}, to write: {{ "{:,}".format(plan["write"]) }},
to free: {{ "{:,}".format(plan["free"]) }}.
{% for step in plan["tables"][:50] if step["status"] != "nothing" %}
- {{ step["table"] }} of {{ step["catalog"] }}: {{ step["action"] }} {{ step["status"] }},
  {{ "{:,}".format(step["read"]) }} bytes to read {{ step["reason"] }}
{%- endfor %}
"""


def lakehouse_care(
    group_id: str = "lakehouse_care",
    *,
    response_timeout: timedelta | None = timedelta(hours=12),
    **parameters: Any,
) -> TaskGroup:
    """A task group of ``plan``, ``is_anything_due``, ``approval`` and ``care``.

    Nothing starts Spark before somebody has approved the plan on the page of the task ``approval``,
    and nothing asks for approval if there is nothing to do.

    :param group_id: the group's name
    :param response_timeout: how long the approval waits; None: for ever
    :param parameters: those of ``TableCareOperator``, and of tasks
    """
    from airflow.providers.standard.operators.hitl import ApprovalOperator

    with TaskGroup(group_id) as group:
        plan = TableCareOperator(task_id="plan", dry_run=True, **parameters)

        @task.short_circuit(ignore_downstream_trigger_rules=False)
        def is_anything_due(found: Mapping[str, Any]) -> bool:
            """Skip the approval if nothing is planned."""
            return "planned" in found["counts"]

        approval = ApprovalOperator(
            task_id="approval",
            subject=_SUBJECT,
            body=_BODY.replace("TASK", plan.task_id),
            response_timeout=response_timeout,
        )
        of_plan = ("tables", "exclude")
        others = {name: each for name, each in parameters.items() if name not in of_plan}
        planned: Any = plan.output
        care = TableCareOperator(task_id="care", plan=planned, **others)
        is_anything_due(planned) >> approval >> care
    return group
