"""Landed files, a table of events, one of rows, one of sums: each DAG follows the one before it.

Days are filled in, a run fails, people correct a table and clear runs in the middle: the sums are
right, and nothing is applied twice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.live.browser import Browser
from tests.live.catalogs import add_catalog, rows_of
from tests.live.client import ENDED
from tests.live.server import Server
from tests.live.spark_python import SparkPython
from tests.support.waiting import wait_for

_DAGS = """
from datetime import datetime
from airflow.sdk import DAG, CronDataIntervalTimetable
from airflow_provider_merge.assets import table_asset
from airflow_provider_merge.operators.clauses import when_matched, when_not_matched
from airflow_provider_merge.operators.create_table import CreateTableOperator, column
from airflow_provider_merge.operators.delete_from import DeleteFromOperator
from airflow_provider_merge.operators.insert_into import InsertIntoOperator
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import (
    cdc_source, changes_source, new_files_source, sql_source, table_source,
)

LAKE = {lake!r}
SCHEMA = "op STRING, id BIGINT, city STRING, amount BIGINT, lsn BIGINT"

def dag(part, schedule, **more):
    return DAG(
        f"{{LAKE}}_{{part}}", schedule=schedule, start_date=datetime(2026, 1, 1), catchup=False,
        default_args={{"catalog_conn_id": LAKE, "retries": 0}}, **more,
    )

def table(name, *columns):
    made = [column(*each.split()) for each in columns]
    return CreateTableOperator(task_id="create", target=name, columns=made)

daily = CronDataIntervalTimetable("@daily", timezone="UTC")
with dag("bronze", daily, end_date=datetime(2026, 1, 31)):
    columns = [each.strip() for each in SCHEMA.split(",")]
    table("shop.bronze", *columns) >> InsertIntoOperator(
        task_id="apply", target="shop.bronze",
        source=new_files_source("{landing}/{{{{ ds }}}}", "json", start="all", schema=SCHEMA),
    )

with dag("repair", None):
    DeleteFromOperator(task_id="apply", target="shop.bronze", where="op = 'x'")

events = sql_source(
    "SELECT * EXCEPT (_change_type, _snapshot_id) FROM came WHERE _change_type = 'insert'",
    sources={{"came": changes_source("shop.bronze", start="all", net=True)}},
)
with dag("silver", [table_asset(LAKE, "shop.bronze")], max_active_runs=1):
    table("shop.silver", "id BIGINT", "city STRING", "amount BIGINT", "lsn BIGINT"
    ) >> MergeIntoOperator(
        task_id="apply", target="shop.silver",
        source=cdc_source(
            events, keys=["id"], sequence=["lsn"], operation="op",
            values={{"insert": "c", "update": "u", "delete": "d"}},
        ),
    )

sums = sql_source(
    "SELECT c.city, count(o.id) AS orders, coalesce(sum(o.amount), 0) AS amount FROM "
    "(SELECT DISTINCT city FROM changed) c LEFT JOIN rows o ON o.city = c.city GROUP BY c.city",
    sources={{
        "rows": table_source("shop.silver"), "changed": changes_source("shop.silver", start="all"),
    }},
)
with dag("gold", [table_asset(LAKE, "shop.silver")], max_active_runs=1):
    table("shop.gold", "city STRING", "orders BIGINT", "amount BIGINT") >> MergeIntoOperator(
        task_id="apply", target="shop.gold", source=sums, on="t.city = s.city",
        when=[
            when_matched("s.orders = 0").delete(),
            when_matched().update_all(),
            when_not_matched("s.orders > 0").insert_all(),
        ],
    )
"""
Event = tuple[str, int, str, int, int]
_LANDED: Mapping[str, list[Event]] = {
    "2026-01-02": [("c", 1, "Oslo", 10, 1), ("c", 2, "Oslo", 5, 2), ("c", 3, "Bern", 7, 3)],
    # The last one is late.
    "2026-01-03": [("u", 1, "Bern", 10, 5), ("d", 2, "Oslo", 5, 6), ("u", 1, "Rome", 10, 4)],
    "2026-01-04": [("c", 4, "Rome", 1, 7), ("x", 3, "Bern", 7, 8)],
    "2026-01-05": [("u", 3, "Bern", 9, 9), ("d", 4, "Rome", 1, 10), ("c", 5, "Oslo", 2, 11)],
}
_DAYS = list(_LANDED)


def _sums(*days: str) -> list[list[Any]]:
    """What gold must have: the events of the days, one after the other."""
    rows: dict[int, Event] = {}
    for event in sorted((e for day in days for e in _LANDED[day]), key=lambda each: each[4]):
        if event[0] == "d":
            del rows[event[1]]
        elif event[0] != "x":
            rows[event[1]] = event
    cities = {each[2] for each in rows.values()}
    of_each = {city: [e[3] for e in rows.values() if e[2] == city] for city in cities}
    return sorted([city, len(amounts), sum(amounts)] for city, amounts in of_each.items())


@dataclass(frozen=True)
class Chain:
    """The DAGs and their tables."""

    server: Server
    python: SparkPython
    lake: str
    folder: Path

    def land(self, day: str) -> None:
        folder = self.folder / "landing" / day
        folder.mkdir(parents=True)
        names = ("op", "id", "city", "amount", "lsn")
        lines = [json.dumps(dict(zip(names, e, strict=True))) for e in _LANDED[day]]
        (folder / "events.json").write_text("\n".join(lines))

    def rows(self, part: str) -> Any:
        return rows_of(self.python, self.lake, self.folder / "lake", f"shop.{part}")

    def runs(self, part: str) -> list[dict[str, Any]]:
        """All runs, the oldest first; none while one goes on."""
        runs = self.server.client.call("GET", f"/dags/{self.lake}_{part}/dagRuns")["dag_runs"]
        found = sorted(runs, key=lambda each: str(each["run_after"]))
        return found if all(each["state"] in ENDED for each in found) else []

    def state(self, part: str) -> str:
        """That of the newest run; empty while one goes on."""
        found = self.runs(part)
        return str(found[-1]["state"]) if found else ""

    def fill_in(self, first: str, last: str, **how: Any) -> None:
        client, dag_id = self.server.client, f"{self.lake}_bronze"
        wait_for(
            "the end of earlier backfills",
            lambda: all(each["completed_at"] for each in client.backfills(dag_id)),
        )
        client.backfill(dag_id, first, last, runs=2, **how)
        wait_for("the end of bronze", lambda: self.state("bronze"), every=1)

    def clear(self, part: str, run: Mapping[str, Any]) -> str:
        """Clear what changes the table; the status of the job."""
        dag_id, run_id = f"{self.lake}_{part}", str(run["dag_run_id"])
        client = self.server.client
        before = client.task(dag_id, run_id, "apply")["try_number"]
        client.clear(dag_id, run_id, "apply")
        wait_for("another try", lambda: client.task(dag_id, run_id, "apply")["try_number"] > before)
        assert client.ended(dag_id, run_id) == "success"
        return str(client.xcom(dag_id, run_id, "apply")["status"])

    def story(self) -> str:
        """The ends of all runs, with the logs of those that failed."""
        client, lines = self.server.client, []
        for part in ("bronze", "repair", "silver", "gold"):
            for run in client.call("GET", f"/dags/{self.lake}_{part}/dagRuns")["dag_runs"]:
                run_id = run["dag_run_id"]
                lines.append(f"--- {part} {run_id}: {run['state']}")
                if run["state"] != "success":
                    lines.append(client.log(f"{self.lake}_{part}", run_id, "apply", 1))
        return "\n".join(lines)


@pytest.mark.by_turns(2)
@pytest.mark.parametrize("format_", ["paimon", "iceberg"])
def test_a_chain_with_a_backfill_a_failed_run_and_clears(
    server: Server, spark_python: SparkPython, tmp_path: Path, browser: Browser, format_: str
) -> None:
    chain = Chain(server, spark_python, f"chain_{format_}", tmp_path)
    add_catalog(server.client, spark_python, chain.lake, format_, tmp_path / "lake")
    _start(chain)
    try:
        _followed(chain)
        _shown(chain, browser, tmp_path)
    except BaseException:
        print(chain.story())  # noqa: T201 - pytest shows it with the failure
        raise


def _start(chain: Chain) -> None:
    text = _DAGS.format(lake=chain.lake, landing=chain.folder / "landing")
    (chain.server.dags / f"{chain.lake}.py").write_text(text)
    for part in ("bronze", "repair", "silver", "gold"):
        chain.server.start_dags(f"{chain.lake}_{part}")


def _followed(chain: Chain) -> None:
    first, second, third, fourth = _DAYS
    client = chain.server.client

    def gold_is(*days: str) -> bool:
        return bool(chain.state("gold")) and chain.rows("gold") == _sums(*days)

    for day in (first, second):
        chain.land(day)
    chain.fill_in(first, second)
    wait_for("the sums of two days", lambda: gold_is(first, second), every=2)

    # An event that nobody knows stops the chain, and what it had stays as it was.
    chain.land(third)
    chain.fill_in(third, third)
    wait_for("a failed run", lambda: chain.state("silver") == "failed", every=1)
    failed = chain.runs("silver")[-1]
    log = client.log(f"{chain.lake}_silver", failed["dag_run_id"], "apply", 1)
    assert "CHANGE_EVENT_INVALID" in log
    assert chain.rows("gold") == _sums(first, second)

    # Somebody removes the event; the chain catches up.
    chain.land(fourth)
    client.trigger(f"{chain.lake}_repair", "by-hand")
    assert client.ended(f"{chain.lake}_repair", "by-hand") == "success"
    chain.fill_in(fourth, fourth)
    wait_for("the sums of four days", lambda: gold_is(*_DAYS), every=2)
    silver = [[id_, city, amount] for id_, city, amount, _ in chain.rows("silver")]
    assert silver == [[1, "Bern", 10], [3, "Bern", 9], [5, "Oslo", 2]]

    # What is cleared, or filled in again, applies nothing twice.
    bronze = chain.rows("bronze")
    assert len(bronze) == sum(map(len, _LANDED.values())) - 1
    assert chain.clear("silver", failed) == "unchanged"
    assert chain.clear("bronze", chain.runs("bronze")[0]) == "unchanged"
    newest = wait_for("the end of gold", lambda: chain.runs("gold"))[-1]
    assert chain.clear("gold", newest) == "unchanged"
    chain.fill_in(first, first, reprocess_behavior="completed")
    wait_for("the end of gold", lambda: chain.state("silver") and gold_is(*_DAYS), every=2)
    assert chain.rows("bronze") == bronze


def _shown(chain: Chain, browser: Browser, folder: Path) -> None:
    """Airflow's graph of an asset has the whole chain."""
    client = chain.server.client
    assets = client.call("GET", "/assets", uri_pattern="shop")["assets"]
    mine = [each for each in assets if chain.lake in each["uri"]]
    (middle,) = [each for each in mine if "silver" in each["uri"]]
    browser.resize(1600, 900)
    browser.open(f"{client.url}/assets/{middle['id']}")
    for part in ("bronze", "silver", "gold"):
        browser.text(f"//*[text()='{chain.lake}_{part}']")
    browser.picture(folder / "graph.png")
