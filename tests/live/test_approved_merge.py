"""The example ``approved_merge``: what a person approved is done, or nothing."""

from __future__ import annotations

from pathlib import Path

from tests.live.approval import Approval
from tests.live.browser import Browser
from tests.live.server import Server
from tests.live.spark_python import ROOT, SparkPython
from tests.live.table import Table

DAG = "approved_merge"
_ORDERS = """
tables.create(connector, {"id": "BIGINT", "amount": "DOUBLE"})
tables.append(connector, [{"id": i, "amount": 1.0} for i in range(1, 6)], "first")
"""
_OTHERS = """
tables.append(connector, [{"id": 100, "amount": 7.0}], "others")
"""
_ROWS = "print(sorted((row['id'], row['amount']) for row in tables.read(connector, name)))"


def test_what_was_approved_is_done_or_nothing(
    server: Server, spark_python: SparkPython, browser: Browser, tmp_path: Path
) -> None:
    table = Table(server, server.folder / "warehouse", spark_python, "orders")
    table.python(_ORDERS)
    landing = server.folder / "landing_orders"
    landing.mkdir()
    (landing / "one.csv").write_text("1,\n2,20\n6,60\n")
    text = (ROOT / "dags_examples" / f"{DAG}.py").read_text()
    server.add_dag(DAG, text.replace("/landing/orders", str(landing)))
    client = server.client

    client.trigger(DAG, "good")
    approval = Approval(server, DAG, "good")
    asked = approval.question()
    assert "1 rows would be inserted, 1\nupdated and 1 deleted in shop.orders" in asked["body"]
    _look(server, browser, tmp_path / "preview.png")
    # Others append meanwhile: the merge does not read that.
    table.python(_OTHERS)
    approval.approve()

    assert client.ended(DAG, "good") == "success", table.story(DAG)
    done = client.xcom(DAG, "good", "merge")
    counts = [done["metrics"][each] for each in ("inserted", "updated", "deleted")]
    assert (done["status"], counts) == ("committed", [1, 1, 1])
    assert [each["name"] for each in done["metrics"]["guards"]] == ["max_deleted_rows"]
    rows = "[(2, 20.0), (3, 1.0), (4, 1.0), (5, 1.0), (6, 60.0), (100, 7.0)]"
    assert table.python(_ROWS).splitlines()[-1] == rows

    client.trigger(DAG, "stale")
    approval = Approval(server, DAG, "stale")
    approval.question()
    (landing / "two.csv").write_text("3,30\n")
    approval.approve()

    assert client.ended(DAG, "stale") == "failed"
    log = client.log(DAG, "stale", "merge", 1)
    assert "APPROVAL_STALE" in log
    assert "source updates: it was 1 files" in log
    assert table.python(_ROWS).splitlines()[-1] == rows


def _look(server: Server, browser: Browser, picture: Path) -> None:
    """The page that the question links to, as a person sees it."""
    url = server.client.url
    browser.open(f"{url}/lakehouse/preview?dag_id={DAG}&run_id=good&task_id=preview")
    told = browser.text("//section[h2[.='Checked before publication']]")
    assert "max_deleted_rows" in told
    assert "holds" in told
    assert "A dry run: nothing was changed." in browser.text("//main")
    _old_beside_new(browser)
    browser.picture(picture)


def _old_beside_new(browser: Browser) -> None:
    """Rows that would change, for who may see them; no XCom has them."""
    browser.click("//button[.='Show some of them']")
    section = "//section[@aria-label='Changed rows']"
    updated = f"{section}//h3[.='Rows that would be updated']/..//tbody/tr"
    assert browser.text(f"{updated}//del") == "1.0"
    assert browser.text(f"{updated}//ins") == "20.0"
    inserted = f"{section}//h3[.='Rows that would be inserted']/..//tbody/tr"
    assert [browser.text(f"{inserted}/td[{n}]") for n in (2, 3)] == ["6", "60.0"]
    deleted = f"{section}//h3[.='Rows that would be deleted']/..//tbody/tr"
    assert browser.text(f"{deleted}/td[2]") == "1"
