"""The pages about tables, as people use them: in Airflow, with a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import pytest

from tests.live.browser import ENTER, Browser
from tests.live.server import Server
from tests.live.spark_python import SparkPython
from tests.live.table import Table
from tests.support.hostile_table import (
    HostileRows,
    HostileTable,
    hostile_plan,
    hostile_result,
    hostile_tables,
)
from tests.support.hostile_texts import hostile_texts
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
import time
from datetime import datetime
from pathlib import Path
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG, BaseOperator
from airflow_provider_merge.operators.drop_partitions import DropPartitionsOperator

class Busy(BaseOperator):
    template_fields = ("catalog_conn_id", "target", "on", "expected_partitions")

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.catalog_conn_id, self.target = "paimon_default", "shop.{name}"
        self.on, self.expected_partitions = "t.id = s.id", [{{"day": "2026-01-29"}}]

    def execute(self, context):
        while not Path({folder!r}, "enough").exists():
            time.sleep(0.1)

def drop(task_id, **partition):
    return DropPartitionsOperator(
        task_id=task_id, target="shop.{name}", partitions=[partition], retries=0,
        dry_run=task_id == "preview",
    )

with DAG({name!r}, schedule=None, start_date=datetime(2024, 1, 1)):
    drop("preview", day="2026-01-30")
    drop("drop", day="2026-01-29") >> drop("fails", hour="1")

with DAG("{name}_open", schedule=None, start_date=datetime(2024, 1, 1)):
    of_preview = "dag_id='{name}', task_ids='preview', key='_link_merge_table'"
    ApprovalOperator(
        task_id="approve", subject="Drop a day?",
        body="[What it would do]({{{{ ti.xcom_pull(" + of_preview + ") }}}})",
    )
    Busy(task_id="busy")
"""
_PAINTED = "return document.querySelectorAll('.plot .barlayer path').length > 0"
# Of the parts of the page, which have moved since it was opened.
_MOVED = """
return new Promise((done) => {
    const seen = [];
    new PerformanceObserver((list) => seen.push(...list.getEntries()))
        .observe({type: "layout-shift", buffered: true});
    setTimeout(() => done(seen.flatMap((shift) => shift.sources)
        .map((each) => each.node?.outerHTML?.slice(0, 200))), 500);
});
"""
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
def table(server: Server, spark_python: SparkPython, tmp_path: Path) -> Iterator[Table]:
    made, client = Table(server, server.folder / "warehouse", spark_python, NAME), server.client
    with ThreadPoolExecutor() as meanwhile:
        filled = meanwhile.submit(made.python, _TABLE)
        server.add_dag(NAME, _DAG.format(name=NAME, folder=str(tmp_path)))
        filled.result()
    client.trigger(NAME, "run")
    client.ended(NAME, "run")
    client.trigger(f"{NAME}_open", "run")
    yield made
    (tmp_path / "enough").touch()
    client.mark_failed(f"{NAME}_open", "run", "approve")
    client.ended(f"{NAME}_open", "run")


@pytest.mark.by_turns(2, 0)
def test_the_pages_about_a_table(
    table: Table, server: Server, browser: Browser, tmp_path: Path
) -> None:
    url, pictures = server.client.url, tmp_path
    states = {each["task_id"]: each["state"] for each in server.client.tasks(NAME, "run")}
    expected = {"preview": "success", "drop": "success", "fails": "failed"}
    assert states == expected, table.story(NAME)
    # Before the first list: names are listed anew only after a while.
    names, hostile = hostile_tables(table.warehouse), HostileTable(table.warehouse).fill()
    rows = HostileRows(table.warehouse).fill()
    from_a_failed_run_to_the_snapshot_before(browser, url)
    through_the_parts_by_keyboard(browser, pictures)
    two_snapshots(browser)
    from_an_approval_to_what_a_dry_run_would_do(browser, url)
    in_airflows_menu(browser, url)
    an_empty_list_says_why(browser, url)
    ages_are_words(browser, url)
    narrow_and_dark(browser, url, pictures)
    hostile_texts_are_shown_as_text(browser, url, names, hostile)
    hostile_rows_are_shown_as_text(browser, url, rows)
    server.client.set_xcom(NAME, "run", "preview", hostile_result(hostile_texts(500)))
    a_hostile_result_is_shown_as_text(browser, url)
    server.client.set_xcom(NAME, "run", "preview", hostile_plan(hostile_texts(500)))
    a_hostile_plan_of_care_is_shown_as_text(browser, url)
    server.client.set_xcom(NAME, "run", "preview", "s3://bucket/result.json")
    where_a_result_is_that_airflow_does_not_keep(browser, url)
    error = dict(zip(("code", "message", "remedy"), hostile_texts(3), strict=True))
    server.client.add_xcom(NAME, "run", "fails", "merge_dry_run_error", error)
    why_a_dry_run_fails(browser, url, error)
    error = {"code": "PARTITION_NOT_EXPECTED", "message": "Another day.", "remedy": "Look."}
    server.client.add_xcom(f"{NAME}_open", "run", "busy", "merge_dry_run_error", error)
    which_guard_would_trip(browser, url)


def where_a_result_is_that_airflow_does_not_keep(browser: Browser, url: str) -> None:
    browser.open(f"{url}/lakehouse/preview?dag_id={NAME}&run_id=run&task_id=preview")
    assert "s3://bucket/result.json" in browser.text("//div[@role='alert']")


def hostile_rows_are_shown_as_text(browser: Browser, url: str, table: HostileRows) -> None:
    place = f"connection=paimon_default&database=shop&table={table.name}"
    browser.open(f"{url}/lakehouse/compare?{place}&before=1&after=2")
    browser.click("//button[.='Show a sample']")
    browser.text("//section[@aria-label='Rows that differ']//td")
    cut = {text if len(text) <= 200 else f"{text[:200]}…" for text in table.values}
    assert cut | set(table.columns) <= set(browser.run(_TEXTS))
    assert browser.run(_TAKEN_FOR_CODE) == [False, 0]


def a_hostile_result_is_shown_as_text(browser: Browser, url: str) -> None:
    browser.open(f"{url}/lakehouse/preview?dag_id={NAME}&run_id=run&task_id=preview")
    browser.text("//h2[.='Orphan files']")
    target, *names = hostile_texts(500)
    shown = set(browser.run(_TEXTS))
    assert set(names) <= shown
    assert f"What the statement would do to shop.{target}" in shown
    assert browser.run(_TAKEN_FOR_CODE) == [False, 0]


def a_hostile_plan_of_care_is_shown_as_text(browser: Browser, url: str) -> None:
    browser.open(f"{url}/lakehouse/preview?dag_id={NAME}&run_id=run&task_id=preview")
    assert browser.text("//h1") == "What table care would do"
    cells = [browser.text(f"//tbody/tr[1]/td[{number}]") for number in (3, 4, 5, 7)]
    assert cells == ["Compact", "failed", "2.0 kB", "at least 5 B"]
    assert set(hostile_texts(500)) <= set(browser.run(_TEXTS))
    assert browser.run(_TAKEN_FOR_CODE) == [False, 0]


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


def why_a_dry_run_fails(browser: Browser, url: str, error: dict[str, str]) -> None:
    browser.open(f"{url}/lakehouse/preview?dag_id={NAME}&run_id=run&task_id=fails")
    assert browser.text("//h1") == f"What the statement would do to shop.{NAME}"
    assert browser.text("//div[@role='alert']").split("\n") == list(error.values())
    assert browser.run(_TAKEN_FOR_CODE) == [False, 0]


def which_guard_would_trip(browser: Browser, url: str) -> None:
    browser.open(f"{url}/lakehouse/preview?dag_id={NAME}_open&run_id=run&task_id=busy")
    states = {
        guard: browser.text(f"//td[.='{guard}']/following-sibling::td")
        for guard in ("expected_partitions", "cardinality")
    }
    assert states == {"expected_partitions": "would trip", "cardinality": "not known"}
    assert browser.run("return document.querySelectorAll('[aria-label^=Guards] td').length") == 6


def from_a_failed_run_to_the_snapshot_before(browser: Browser, url: str) -> None:
    browser.open(f"{url}/dags/{NAME}/runs/run")
    browser.click("//td//a[.='fails']")
    browser.click("//a[contains(@href, '/tasks/fails/details')]")
    browser.click("//a[contains(@href, '/lakehouse/table') and .='Table']")
    assert browser.text("//section[@aria-label='Chosen snapshot']//h2") == "Snapshot 2"
    assert browser.text("//dt[.='Rows deleted']/../dd") == "1"
    written_by = browser.text("//dt[.='Written by']/../dd/a")
    assert written_by == f"{NAME} / drop"
    wait_for("the picture", lambda: browser.run(_PAINTED))
    assert browser.run(_MOVED) == []
    assert serious_problems(browser) == []


def through_the_parts_by_keyboard(browser: Browser, pictures: Path) -> None:
    browser.picture(pictures / "timeline.png")
    running = f"//h2[.='Running tasks']/..//a[.='{NAME}_open / busy']"
    for tab, expected in (
        ("Partitions", "//td[.='day=2026-01-30']"),
        ("Schema", "//td[.='id']"),
        ("Table care", running),
    ):
        browser.type(f"//nav[@aria-label='Parts']//button[.='{tab}']", ENTER)
        assert browser.text(expected)
        assert serious_problems(browser) == []
    browser.type("//nav[@aria-label='Parts']//button[.='Timeline']", ENTER)


def two_snapshots(browser: Browser) -> None:
    browser.click("//a[contains(., 'Compare with snapshot 1')]")
    assert browser.text("//td[.='day=2026-01-29']/../td[4]") == "-1"
    browser.click("//button[.='Show a sample']")
    row = "//section[@aria-label='Rows that differ']//td[.='before']"
    assert [browser.text(f"{row}/../td[{n}]") for n in (2, 3)] == ["1", "2026-01-29"]
    assert serious_problems(browser) == []


def from_an_approval_to_what_a_dry_run_would_do(browser: Browser, url: str) -> None:
    browser.open(f"{url}/dags/{NAME}_open/runs/run/tasks/approve/required_actions")
    browser.click("//a[.='What it would do']")
    browser.to_newest_window()
    assert browser.text("//h1") == f"What the statement would do to shop.{NAME}"
    assert browser.text("//dt[.='Deleted']/../dd") == "1"
    assert "2026-01-30" in browser.text("//dt[.='Partitions']/../dd")
    counts = [browser.text(f"//td[.='day=2026-01-30']/../td[{n}]") for n in range(2, 7)]
    assert counts == ["0", "0", "1", "0", "1"]
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


def an_empty_list_says_why(browser: Browser, url: str) -> None:
    reason = "//section//p[starts-with(., 'No')]"
    browser.open(f"{url}/lakehouse/?connection=paimon_default&search=unheard")
    assert browser.text(reason) == 'No table of paimon_default has "unheard" in its name.'
    place = f"connection=paimon_default&database=shop&table={NAME}"
    browser.open(f"{url}/lakehouse/table?{place}&tab=partitions&partition=2031")
    assert browser.text(reason) == 'No partition has "2031" in its name.'


def ages_are_words(browser: Browser, url: str) -> None:
    browser.open(f"{url}/lakehouse/?connection=paimon_default&search={NAME}")
    cells = browser.text(f"//td//a[.='shop.{NAME}']/ancestor::tr")
    assert re.search(r"\b\d+ (second|minute|hour)s?\b", cells), cells


def narrow_and_dark(browser: Browser, url: str, pictures: Path) -> None:
    browser.run("localStorage.setItem('theme', 'dark')")
    browser.resize(500, 900)
    browser.open(f"{url}/lakehouse/table?connection=paimon_default&database=shop&table={NAME}")
    wait_for("the picture", lambda: browser.run(_PAINTED))
    assert browser.run("return document.documentElement.dataset.theme") == "dark"
    browser.picture(pictures / "narrow.png")
    fits_and_has_no_serious_problem(browser)
    place = f"connection=paimon_default&database=shop&table={NAME}"
    for page, shown in (
        ("?connection=paimon_default&older_than=3600", "//button[.='Go on']"),
        (f"compare?{place}&before=1&after=2", "//td[.='day=2026-01-29']"),
        (f"preview?dag_id={NAME}&run_id=run&task_id=preview", "//td[.='day=2026-01-30']"),
    ):
        browser.open(f"{url}/lakehouse/{page}")
        assert browser.text(shown)
        fits_and_has_no_serious_problem(browser)


def fits_and_has_no_serious_problem(browser: Browser) -> None:
    """Nothing but tables, which scroll by themselves, is wider than the window."""
    assert browser.run(_TOO_WIDE) == []
    assert serious_problems(browser) == []


def serious_problems(browser: Browser) -> Any:
    """What axe finds; nothing where it is not installed."""
    try:
        axe = distribution("axe-core-python").locate_file("axe_core_python/axe.min.js")
    except PackageNotFoundError:
        return []
    browser.run(Path(str(axe)).read_text())
    return browser.run(_AXE)
