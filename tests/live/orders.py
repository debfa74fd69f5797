"""A table whose rows tell how often a merge was applied, and the DAG that merges into it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.live.table import Table

TASK = "merge"

_CREATE = """
table = tables.create(connector, {"id": "BIGINT", "n": "BIGINT"}, name=name)
tables.append_with_pypaimon(table, [{"id": 1, "n": 100}, {"id": 2, "n": 200}])
"""
_ROWS = """
print(json.dumps({row["id"]: row["n"] for row in tables.read(connector, name)}))
"""

# Adding is not idempotent: a merge that is applied twice shows in the numbers.
_DAG = """
from datetime import datetime, timedelta
from airflow.sdk import DAG
from airflow_provider_merge.operators.clauses import when_matched, when_not_matched
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import sql_source

with DAG({dag_id!r}, schedule=None, start_date=datetime(2024, 1, 1), max_active_runs=2):
    MergeIntoOperator(
        task_id="merge",
        target="shop.{dag_id}",
        source=sql_source({source!r}, sources={sources!r}),
        on="t.id = s.id",
        when=[when_matched().update({{"n": {value!r}}}), when_not_matched().insert_all()],
        retries={retries},
        retry_delay=timedelta(seconds=1),
        after_ended_try={then!r},
        **{guards!r},
    )
"""
SOURCE = "SELECT id, n FROM VALUES (2, 20), (3, 30) AS v(id, n)"
# What is assigned takes 8 seconds: after the guard and before the commit, for who stops the driver.
_PAUSE = "java_method('java.lang.Thread', 'sleep', CAST(if(s.id = 2, 8000, 0) AS BIGINT))"
SLOWLY = f"t.n + s.n + 0 * coalesce(length({_PAUSE}), 0)"
BEFORE = {1: 100, 2: 200}
ONCE = {1: 100, 2: 220, 3: 30}
TWICE = {1: 100, 2: 240, 3: 60}
THRICE = {1: 100, 2: 260, 3: 90}


@dataclass(frozen=True)
class Orders(Table):
    """A table whose snapshot 1 holds ``BEFORE``, and the DAG of its name."""

    def create(self, **dag: Any) -> None:
        """Make the table and the DAG."""
        self.python(_CREATE)
        self.write_dag(**dag)

    def write_dag(
        self,
        *,
        retries: int = 0,
        source: str = SOURCE,
        sources: Mapping[str, Any] | None = None,
        value: str = "t.n + s.n",
        then: str = "fail",
        **guards: Any,
    ) -> None:
        """Make or change the DAG: each run adds the source's numbers to the table's.

        ``sources`` are those that the query ``source`` reads; ``then`` is the task's
        ``after_ended_try``; ``guards`` are other parameters of it.
        """
        parts = {"source": source, "sources": dict(sources or {}), "value": value, "then": then}
        text = _DAG.format(dag_id=self.dag_id, retries=retries, guards=guards, **parts)
        self.server.add_dag(self.dag_id, text)

    @property
    def dag_id(self) -> str:
        """The DAG has the table's name."""
        return self.name

    def rows(self) -> dict[int, int]:
        """``n`` by ``id``, as pypaimon reads them."""
        document = json.loads(self.python(_ROWS).splitlines()[-1])
        return {int(key): value for key, value in document.items()}

    def trigger(self, run_id: str) -> None:
        """Start a run."""
        self.server.client.trigger(self.dag_id, run_id)

    def task(self, run_id: str) -> dict[str, Any]:
        """The run's only task."""
        return self.server.client.task(self.dag_id, run_id, TASK)

    def ended(self, run_id: str) -> str:
        """Wait for the end of a run; its state."""
        return self.server.client.ended(self.dag_id, run_id)

    def xcom(self, run_id: str) -> dict[str, Any]:
        """What the task returned."""
        return self.server.client.xcom(self.dag_id, run_id, TASK)

    def event_snapshots(self) -> list[int]:
        """The snapshot id of every asset event, oldest first."""
        extras = self.server.client.asset_extras(self.dag_id)
        return [extra["snapshot_id"] for extra in extras]

    def log(self, run_id: str, try_number: int = 1) -> str:
        """The log of a try."""
        return self.server.client.log(self.dag_id, run_id, TASK, try_number)
