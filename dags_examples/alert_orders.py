"""A merge that tells a chat, by a webhook, why it failed: the code, the table and the guard.

The variable ``alert_webhook`` of Airflow is the address that gets a JSON document. The merge takes
changes of a day only as long as few enough orders of the file cannot be read. It needs the
connections ``paimon_default`` (the warehouse) and ``spark_default``, and the table that
``merge_orders`` creates.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import requests
from airflow.sdk import DAG, BaseNotifier

from airflow_provider_merge.operators.clauses import when_matched, when_not_matched
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import file_source


class WebhookNotifier(BaseNotifier):
    """Posts what ended a task to a webhook.

    :param url: where to
    """

    template_fields: Sequence[str] = ("url",)

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url

    def notify(self, context: Any) -> None:
        """Post the facts; errors of this project have them as attributes."""
        error, ti = context["exception"], context["ti"]
        facts = {
            "task": f"{ti.dag_id}.{ti.task_id}",
            "run": ti.run_id,
            "code": getattr(error, "code", type(error).__name__),
            "table": getattr(error, "table", ""),
            "guard": getattr(error, "guard", ""),
            "text": str(error),
        }
        requests.post(self.url, json=facts, timeout=10).raise_for_status()


with DAG(
    "alert_orders",
    schedule=None,
    start_date=datetime(2024, 1, 1),
    params={"landing": "/landing"},
    default_args={
        "retries": 2,
        "retry_delay": timedelta(minutes=1),
        "on_failure_callback": WebhookNotifier("{{ var.value.alert_webhook }}"),
    },
) as dag:
    MergeIntoOperator(
        task_id="merge",
        target="shop.orders",
        source=file_source(
            "{{ params.landing }}/orders.csv",
            "csv",
            options={"header": True},
            schema="order_id BIGINT, customer STRING, amount DECIMAL(10, 2)",
            on_bad_rows="quarantine",
            quarantine="{{ params.landing }}/bad",
            max_bad_rows=10,
        ),
        on="t.order_id = s.order_id",
        when=[
            when_matched().update({"amount": "s.amount"}),
            when_not_matched().insert(
                {
                    "order_id": "s.order_id",
                    "customer": "s.customer",
                    "amount": "s.amount",
                    "status": "'open'",
                }
            ),
        ],
    )
