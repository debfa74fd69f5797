"""Tables to take care of, and tasks that do it, without a job."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from airflow_provider_merge.operators.table_care import TableCareOperator
from tests.support.paimon_metadata import TableFiles

HOUR = 3600


def table(
    warehouse: Path, name: str, *, files: int = 1, old: int = 0, **options: Any
) -> TableFiles:
    """A Paimon table of ``files`` small files, each of its snapshot, of which so many are old."""
    found = TableFiles(warehouse, name).create(**options)
    for number in range(files):
        seconds = time.time() - (5 * HOUR if number < old else 0)
        made = found.add({"2026-01-31": 10}, time_millis=int(seconds * 1000))
        os.utime(found.folder / f"snapshot/snapshot-{made}", (seconds, seconds))
    return found


class Tries:
    """A task and its tries."""

    def __init__(self) -> None:
        self.pushed: dict[str, Any] = {}
        self.context: dict[str, Any] = {
            "dag_run": SimpleNamespace(start_date=datetime(2026, 1, 31, tzinfo=UTC))
        }

    def run(
        self,
        number: int = 1,
        **parameters: Any,
    ) -> dict[str, Any]:
        return self.tried(TableCareOperator(task_id="t", retries=1, **parameters), number)

    def tried(self, operator: Any, number: int) -> dict[str, Any]:
        """What a task returns in this try."""
        ti = SimpleNamespace(
            dag_id="d", run_id="r", task_id="t", map_index=-1, max_tries=1, try_number=number,
            xcom_push=self.pushed.__setitem__, get_task_states=lambda **_: {},
        )  # fmt: skip
        context: Any = {**self.context, "ti": ti}
        found: dict[str, Any] = operator.execute(context)
        return found


def told(result: dict[str, Any]) -> dict[str, Any]:
    """The steps of a result by action and table, each with its status."""
    return {
        f"{each['action']} {each['table']}".strip(): each["status"] for each in result["tables"]
    }
