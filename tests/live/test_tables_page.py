"""The pages about tables, as people use them: in Airflow, with a browser."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import pytest

from tests.live.browser import ENTER, Browser
from tests.live.table import Table
from tests.support.hostile_table import HostileTable, hostile_tables
from tests.support.waiting import wait_for

NAME = "tables_page"
_TABLE = """
import datetime as dt
columns = {"id": "BIGINT", "day": "DATE"}
table = tables.create(connector, columns, ["day"], name=name)
days = [dt.date(2026, 1, day) for day in (29, 30, 31)]
tables.append_with_pypaimon(table, [{"id": 1, "day": day} for day in days])
"""
_DAG = """
from datetime import datetime
from airflow.sdk import DAG
from airflow_provider_merge.operators.drop_partitions import DropPartitionsOperator
from airflow_provider_merge.operators.truncate_table import TruncateTableOperator

with DAG({name!r}, schedule=None, start_date=datetime(2024, 1, 1)):
    drop = {{"target": "shop.{name}", "partitions": [{{"day": "2026-01-29"}}]}}
    preview = DropPartitionsOperator(task_id="preview", dry_run=True, **drop)
    preview >> DropPartitionsOperator(task_id="drop", **drop)

with DAG("{name}_fails", schedule=None, start_date=datetime(2024, 1, 1)):
    DropPartitionsOperator(
        task_id="drop", target="shop.{name}", partitions=[{{"hour": "1"}}], retries=0
    )
"""
_PAINTED = "return document.querySelectorAll('.plot .barlayer path').length > 0"
_TEXTS = "return [...document.querySelectorAll('.long')].map((each) => each.textContent)"
_TOO_WIDE = """
if (document.documentElement.scrollWidth <= innerWidth) return [];
const wide = [...document.querySelectorAll("main *")].filter(
    (each) => each.getBoundingClientRect().right > innerWidth
);
return ["the page", ...wide.map((each) => each.outerHTML.slice(0, 100))];
"""
_TAKEN_FOR_CODE = """
return [
    "hostile" in window, document.querySelectorAll(".hostile, main script, main img, iframe").length
];
"""
_AXE = """
const found = await axe.run(document, {resultTypes: ["violations"]});
return found.violations
    .filter((each) => ["serious", "critical"].includes(each.impact))
    .map((each) => each.id + ": " + each.nodes.map((node) => node.html).join(" ").slice(0, 400));
"""


@pytest.fixture
def table(server, spark_python) -> Table:
    made = Table(server, server.folder / "warehouse", spark_python, NAME)
    made.python(_TABLE)
    server.add_dag(NAME, _DAG.format(name=NAME))
    for dag_id in (NAME, f"{NAME}_fails"):
        server.client.trigger(dag_id, "run")
        server.client.ended(dag_id, "run")
    return made


@pytest.mark.by_turns(2, 0)
def test_the_pages_about_a_table(table, server, browser, tmp_path):
    url, pictures = server.client.url, tmp_path
    assert server.client.run_state(NAME, "run") == "success", table.story(NAME)
    # Before the first list: names are listed anew only after a while.
    names, hostile = hostile_tables(table.warehouse), HostileTable(table.warehouse).fill()
    from_a_failed_run_to_the_snapshot_before(browser, url)
    through_the_parts_by_keyboard(browser, pictures)
    two_snapshots(browser)
    what_a_dry_run_would_do(browser, url, server.client.links(NAME, "run", "preview")["Table"])
    in_airflows_menu(browser, url)
    narrow_and_dark(browser, url, pictures)
    hostile_texts_are_shown_as_text(browser, url, names, hostile)


def hostile_texts_are_shown_as_text(
    browser: Browser, url: str, names: list[str], table: HostileTable
) -> None:
    page = f"{url}/lakehouse/table?connection=paimon_default&database=shop&table={table.name}"
    days = [f"day={value}" for value in table.partition_values]
    tags = [f"tag {value}" for value in table.tags]
    for tab, expected in (
        ("timeline", table.writers[1::2] + tags),
        ("partitions", days),
        ("schema", table.columns),
        ("care", table.tags),
    ):
        browser.open(f"{page}&tab={tab}")
        browser.text("//section[@id='part']//td")
        assert set(expected) <= set(browser.run(_TEXTS))
        assert browser.run(_TAKEN_FOR_CODE) == [False, 0]
    # Of two pages, fifty tables each.
    for offset in (0, 50):
        browser.open(f"{url}/lakehouse/?connection=paimon_default&search=odd.&offset={offset}")
        browser.text("//td")
        shown = browser.run(_TEXTS)
        names = [name for name in names if f"odd.{name}" not in shown]
        assert browser.run(_TAKEN_FOR_CODE) == [False, 0]
    assert names == []


def from_a_failed_run_to_the_snapshot_before(browser: Browser, url: str) -> None:
    browser.open(f"{url}/dags/{NAME}_fails/runs/run")
    browser.click("//td//a[.='drop']")
    browser.click("//a[contains(@href, '/tasks/drop/details')]")
    browser.click("//a[contains(@href, '/lakehouse/table') and .='Table']")
    assert browser.text("//section[@aria-label='Chosen snapshot']//h2") == "Snapshot 2"
    assert browser.text("//dt[.='Rows deleted']/../dd") == "1"
    written_by = browser.text("//dt[.='Written by']/../dd/a")
    assert written_by == f"{NAME} / drop"
    wait_for("the picture", lambda: browser.run(_PAINTED))
    assert serious_problems(browser) == []


def through_the_parts_by_keyboard(browser: Browser, pictures: Path) -> None:
    browser.picture(pictures / "timeline.png")
    for tab, expected in (
        ("Partitions", "//td[.='day=2026-01-30']"),
        ("Schema", "//td[.='id']"),
        ("Table care", "//h2[.='Expire snapshots']"),
    ):
        browser.type(f"//nav[@aria-label='Parts']//button[.='{tab}']", ENTER)
        assert browser.text(expected)
        assert serious_problems(browser) == []
    browser.type("//nav[@aria-label='Parts']//button[.='Timeline']", ENTER)


def two_snapshots(browser: Browser) -> None:
    browser.click("//a[contains(., 'Compare with snapshot 1')]")
    assert browser.text("//td[.='day=2026-01-29']/../td[4]") == "-1"
    assert serious_problems(browser) == []


def what_a_dry_run_would_do(browser: Browser, url: str, page: str) -> None:
    browser.open(f"{url}{page}")
    assert browser.text("//h1") == f"What the statement would do to shop.{NAME}"
    assert browser.text("//dt[.='Deleted']/../dd") == "1"
    assert "2026-01-29" in browser.text("//dt[.='Partitions']/../dd")
    assert serious_problems(browser) == []


def in_airflows_menu(browser: Browser, url: str) -> None:
    """A link out of the frame opens Airflow's page in its place."""
    browser.open(f"{url}/plugin/tables/lakehouse/?connection=paimon_default")
    browser.enter_frame("//iframe")
    browser.fill("//input[@type='search']", NAME)
    browser.click(f"//a[.='shop.{NAME}']")
    browser.click(f"//table//a[.='{NAME} / drop']")
    browser.leave_frame()
    wait_for("the task's page", lambda: f"/dags/{NAME}/runs/run/tasks/drop" in browser.url)


def narrow_and_dark(browser: Browser, url: str, pictures: Path) -> None:
    browser.run("localStorage.setItem('theme', 'dark')")
    browser.resize(500, 900)
    browser.open(f"{url}/lakehouse/table?connection=paimon_default&database=shop&table={NAME}")
    wait_for("the picture", lambda: browser.run(_PAINTED))
    assert browser.run("return document.documentElement.dataset.theme") == "dark"
    # Nothing but tables, which scroll by themselves, is wider than the window.
    assert browser.run(_TOO_WIDE) == []
    assert serious_problems(browser) == []
    browser.picture(pictures / "narrow.png")


def serious_problems(browser: Browser) -> Any:
    """What axe finds; nothing where it is not installed."""
    try:
        axe = distribution("axe-core-python").locate_file("axe_core_python/axe.min.js")
    except PackageNotFoundError:
        return []
    browser.run(Path(str(axe)).read_text())
    return browser.run(_AXE)
