"""A table with a partition for each day, and the DAGs that overwrite one: by date, key or form."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.live.client import ENDED
from tests.live.table import Table
from tests.support.waiting import wait_for

TASK = "overwrite"

_CREATE = """
days = {days!r}
columns = {{"day": "STRING", "id": "BIGINT", "n": "BIGINT"}}
table = tables.create(connector, columns, ["day"], name=name)
old = [{{"day": day, "id": id, "n": -1}} for day in days for id in range(5)]
tables.append_with_pypaimon(table, old)
"""
_ROWS = """
found = [[row["day"], row["id"], row["n"]] for row in tables.read(connector, name)]
print(json.dumps(found))
"""
_DAG = """
from datetime import datetime, timedelta
from airflow.sdk import DAG, CronDataIntervalTimetable, CronPartitionTimetable, Param
from airflow_provider_merge.operators.insert_overwrite import InsertOverwriteOperator
from airflow_provider_merge.operators.sources import sql_source

DAY = "{{{{ run_partition('day') }}}}"
dates = {{
    "start_date": datetime(2026, 1, 1), "end_date": datetime(2026, 1, 31), "catchup": False
}}
form = {{
    "day": Param(None, type=["null", "string"], format="date"),
    "mode": Param("static", enum=["dynamic", "static"]),
    "dry_run": Param(False, type="boolean"),
}}

def overwrite(factor):
    InsertOverwriteOperator(
        task_id="overwrite",
        target="shop.{name}",
        mode="{{{{ params.mode }}}}",
        partition={{"day": DAY}},
        source=sql_source(
            f"SELECT id, id + {{factor}} * day(DATE '{{DAY}}') AS n FROM range(3)", sources={{}}
        ),
        dry_run="{{{{ params.dry_run }}}}",
        retries=1,
        retry_delay=timedelta(seconds=1),
    )

daily = CronDataIntervalTimetable("@daily", timezone="UTC")
with DAG({name!r}, schedule=daily, params=form, **dates):
    overwrite(100)

with DAG("{name}_form", schedule=None, start_date=datetime(2026, 1, 1), params=form):
    overwrite(100)

with DAG("{name}_dynamic", schedule=daily, params={{"late": "", "empty": ""}}, **dates):
    InsertOverwriteOperator(
        task_id="overwrite",
        target="shop.{name}",
        mode="dynamic",
        expected_partitions=[{{"day": "{{{{ run_partition() }}}}"}}],
        source=sql_source({arrivals!r}, sources={{}}),
        retries=1,
        retry_delay=timedelta(seconds=1),
    )

keyed = CronPartitionTimetable("@daily", timezone="UTC", key_format="%Y-%m-%d")
with DAG("{name}_keyed", schedule=keyed, params=form, **dates):
    overwrite(1000)
"""
# What arrived on a day: rows of that day. On the day ``late`` one of them is of the day before, and
# on the day ``empty`` there are none.
_ARRIVALS = """
SELECT CAST(date_sub(DATE '{{ ds }}', days_late) AS STRING) AS day,
       id, id + 100 * day(DATE '{{ ds }}') AS n
FROM (SELECT id, if(id = 2 AND '{{ ds }}' = '{{ params.late }}', 1, 0) AS days_late FROM range(3))
WHERE '{{ ds }}' <> '{{ params.empty }}'
"""
Rows = list[tuple[str, int, int]]


def old(day: str) -> Rows:
    """The rows that a day has at first."""
    return [(day, number, -1) for number in range(5)]


def new(day: str, factor: int = 100) -> Rows:
    """The rows that an overwrite puts in their place; the keyed DAG has the factor 1000."""
    return [(day, number, number + factor * int(day[-2:])) for number in range(3)]


@dataclass(frozen=True)
class Days(Table):
    """A table whose snapshot 1 holds the old rows of some days, and its four DAGs."""

    def create(self, days: Sequence[str]) -> None:
        """Make the table and the DAGs."""
        self.python(_CREATE.format(days=list(days)))
        self.server.add_dag(self.dag_id, _DAG.format(name=self.name, arrivals=_ARRIVALS))

    @property
    def dag_id(self) -> str:
        """The DAG with a schedule; a run for each day."""
        return self.name

    @property
    def form(self) -> str:
        """The DAG that people start."""
        return f"{self.name}_form"

    @property
    def dynamic(self) -> str:
        """The DAG with a schedule that overwrites what arrived on a day, dynamically."""
        return f"{self.name}_dynamic"

    @property
    def keyed(self) -> str:
        """The DAG of partitioned runs."""
        return f"{self.name}_keyed"

    def rows(self) -> Rows:
        """All rows, as pypaimon reads them, in their order."""
        found = json.loads(self.python(_ROWS).splitlines()[-1])
        return sorted((day, number, n) for day, number, n in found)

    def backfill_runs(self, dag_id: str) -> list[dict[str, Any]]:
        """The runs of a DAG's backfills, by date; waits until all have ended."""
        path = f"/dags/{dag_id}/dagRuns"

        def ended() -> list[dict[str, Any]]:
            found = self.server.client.call("GET", path, run_type="backfill")["dag_runs"]
            return found if all(run["state"] in ENDED for run in found) else []

        runs = wait_for(f"the end of the backfill of {dag_id}", ended, every=1)
        return sorted(runs, key=lambda run: str(run["logical_date"]))

    def wait_for_completion(self, dag_id: str) -> None:
        """Wait until Airflow has noticed the end of a backfill; it takes no other one before."""
        client = self.server.client
        wait_for(
            f"the completion of the backfill of {dag_id}",
            lambda: all(each["completed_at"] for each in client.backfills(dag_id)),
            every=1,
        )

    def result(self, dag_id: str, run_id: str) -> dict[str, Any]:
        """What the task of a run returned."""
        return self.server.client.xcom(dag_id, run_id, TASK)

    def tries(self, dag_id: str, run_id: str) -> int:
        """How often the task of a run was tried."""
        return int(self.server.client.task(dag_id, run_id, TASK)["try_number"])
