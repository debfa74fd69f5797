"""The trigger form of the example ``daily_summary_repair``, filled in by a browser: what is chosen
there arrives in the job.
"""

from __future__ import annotations

import json
import shutil

import pytest

from tests.live.browser import Browser
from tests.live.server import Server
from tests.live.spark_python import ROOT, SparkPython
from tests.live.table import Table
from tests.support.waiting import wait_for

DAG = "daily_summary_repair"
JANUARY, FEBRUARY = "2013-01-05", ["2013-02-01", "2013-02-02"]

# Run in the Spark environment: old summaries of three days, and later flights of two of them.
_TABLES = """
import datetime as dt
name = TableName("flights", "daily_summary")
columns = {{"month": "STRING", "flight_date": "DATE", "origin": "STRING", "flights": "BIGINT",
    "departed": "BIGINT", "mean_dep_delay": "DOUBLE", "mean_arr_delay": "DOUBLE"}}
table = tables.create(connector, columns, ["month", "flight_date"], name=name)
days = [dt.date.fromisoformat(day) for day in {days!r}]
tables.append_with_pypaimon(table, [
    {{"month": f"{{day:%Y-%m}}", "flight_date": day, "origin": "OLD", "flights": 99}}
    for day in days
])
name = TableName("flights", "flight")
columns = {{"flight_date": "DATE", "origin": "STRING", "dep_time": "INT", "dep_delay": "INT",
    "arr_delay": "INT"}}
flight = {{"origin": "JFK", "dep_time": 517, "dep_delay": 2, "arr_delay": 11}}
table = tables.create(connector, columns, name=name)
tables.append_with_pypaimon(table, [{{**flight, "flight_date": day}} for day in days[:2]])
"""
_ROWS = """
rows = tables.read(connector, TableName("flights", "daily_summary"))
print(json.dumps(sorted([str(row["flight_date"]), row["origin"], row["flights"]] for row in rows)))
"""


@pytest.mark.by_turns(2, 1)
def test_what_a_person_chooses_is_replaced(
    server: Server, spark_python: SparkPython, browser: Browser
) -> None:
    table = Table(server, server.folder / "warehouse", spark_python, "daily_summary")
    table.python(_TABLES.format(days=[JANUARY, *FEBRUARY]))
    shutil.copyfile(ROOT / "dags_examples" / "daily_summary.py", server.dags / "daily_summary.py")
    server.start_dags(DAG)

    browser.open(f"{server.client.url}/dags/{DAG}")
    browser.click("//button[normalize-space(.)='Trigger']")
    browser.fill("//input[@name='element_month']", "02142013")
    browser.click("//div[@id='element_mode']")
    browser.click("//div[@role='option' and .='are cleared (static)']")
    browser.click("//label[@id='switch:element_dry_run']")
    browser.click("//div[@role='dialog']//button[normalize-space(.)='Trigger']")
    (run_id,) = wait_for("the run", lambda: server.client.runs(DAG))

    assert server.client.ended(DAG, run_id) == "success", table.story(DAG)
    found = json.loads(table.python(_ROWS).splitlines()[-1])
    # Neither January, which the form has at first, nor a day that has no flights any more.
    assert found == [[JANUARY, "OLD", 99], [FEBRUARY[0], "JFK", 1]]
