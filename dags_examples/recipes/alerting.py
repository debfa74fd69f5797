"""Recipe: a chat is told why a merge failed. See docs/recipes/alerting.md.

The variable ``alert_webhook`` of Airflow is the address that gets a JSON document.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

import requests
from airflow.sdk import DAG, BaseNotifier

from airflow_provider_merge.operators.clauses import when_matched, when_not_matched
from airflow_provider_merge.operators.create_table import CreateTableOperator, column
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import file_source


class WebhookNotifier(BaseNotifier):
    """Posts what ended a task to a webhook.

    :param url: where to
    """

    template_fields: ClassVar[Sequence[str]] = ("url",)

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
    "alerting",
    schedule=None,
    start_date=datetime(2026, 1, 1),
    params={"landing": "/landing"},
    default_args={
        "catalog_conn_id": "paimon_default",
        "target": "shop.payments",
        "retries": 2,
        "retry_delay": timedelta(minutes=1),
        "on_failure_callback": WebhookNotifier("{{ var.value.alert_webhook }}"),
    },
) as dag:
    create = CreateTableOperator(
        task_id="create",
        columns=[column("payment_id", "BIGINT"), column("amount", "DECIMAL(10, 2)")],
    )
    merge = MergeIntoOperator(
        task_id="merge",
        source=file_source(
            "{{ params.landing }}/payments",
            "csv",
            options={"header": True},
            schema="payment_id BIGINT, amount DECIMAL(10, 2)",
            on_bad_rows="quarantine",
            quarantine="{{ params.landing }}/bad",
            max_bad_rows=10,
        ),
        on="t.payment_id = s.payment_id",
        when=[when_matched().update_all(), when_not_matched().insert_all()],
    )
    create >> merge
