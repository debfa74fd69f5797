"""The forms of the connection types in a real browser, and what they send, by the API."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from tests.live.browser import DOWN, Browser
from tests.live.client import Client
from tests.live.server import Server
from tests.live.store import ACCESS_KEY, SECRET_KEY, Store
from tests.support.paimon_metadata import TableFiles
from tests.support.waiting import wait_for

EXTRA_FIELDS = "//button[contains(., 'Extra Fields') and not(contains(., 'JSON'))]"
METASTORE = "//div[@id='element_metastore']"
CATALOG = "//div[@id='element_type']"
READ = "s3://lake can be read. It has 1 database: shop."


@pytest.fixture
def lake(store: Store) -> Store:
    TableFiles(store.bucket).create()
    return store


def test_the_form_is_filled_in_saved_and_tested(
    server: Server, lake: Store, browser: Browser
) -> None:
    browser.open(f"{server.client.url}/connections")
    browser.click("//button[contains(., 'Add Connection')]")
    browser.fill("//input[@name='connection_id']", "formed")
    # The types may come later than the form.
    browser.type("//input[@role='combobox']", "Apache Paimon")
    browser.click("//div[@role='option' and contains(., 'Apache Paimon')]")
    browser.fill("//label[starts-with(., 'Access key')]/../..//input", ACCESS_KEY)
    browser.fill("//label[starts-with(., 'Secret key')]/../..//input[@type='password']", SECRET_KEY)
    browser.click(EXTRA_FIELDS)
    # The field still moves while the section unfolds: a click might miss it.
    browser.type(f"{METASTORE}//input[@role='combobox']", DOWN)
    assert browser.text("//div[@role='listbox']").split() == ["filesystem", "rest"]
    browser.click("//div[@role='option' and .='filesystem']")
    browser.fill("//input[@name='element_warehouse']", "s3://lake")
    browser.fill("//input[@name='element_endpoint']", lake.endpoint)
    browser.fill("//input[@name='element_region']", "us-east-1")
    browser.click("//button[contains(., 'Save')]")

    assert browser.text("//td[.='formed']/following-sibling::td[1]") == "paimon"
    saved = server.client.call("GET", "/connections/formed")
    assert (saved["conn_type"], saved["login"], saved["password"]) == ("paimon", ACCESS_KEY, "***")
    given = {name: value for name, value in json.loads(saved["extra"]).items() if value}
    assert given == {
        "metastore": "filesystem",
        "warehouse": "s3://lake",
        "endpoint": lake.endpoint,
        "region": "us-east-1",
    }

    with_port_0(server.client, "formed")
    browser.open(f"{server.client.url}/connections")
    row = "//td[.='formed']/.."
    browser.click(f"{row}//button[@aria-label='Test Connection']")
    assert browser.text(f"//*[.='{READ}']") == READ

    browser.click(f"{row}//button[@aria-label='Edit Connection']")
    browser.click("//input[@name='password']/..//button")
    wait_for("the mask", lambda: browser.value("//input[@name='password']") == "***")
    assert SECRET_KEY not in browser.run("return document.documentElement.outerHTML")


def test_icebergs_form_needs_no_json(server: Server, browser: Browser, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/catalog.db"
    SqlCatalog("iceberg_formed", uri=database).close()
    browser.open(f"{server.client.url}/connections")
    browser.click("//button[contains(., 'Add Connection')]")
    browser.fill("//input[@name='connection_id']", "iceberg_formed")
    browser.type("//input[@role='combobox']", "Lakehouse MERGE")
    browser.click("//div[@role='option' and contains(., 'Apache Iceberg (Lakehouse MERGE)')]")
    browser.fill("//label[starts-with(., 'Catalog URI')]/../..//input", database)
    browser.click(EXTRA_FIELDS)
    browser.type(f"{CATALOG}//input[@role='combobox']", DOWN)
    assert browser.text("//div[@role='listbox']").split() == ["rest", "sql", "glue"]
    browser.click("//div[@role='option' and .='sql']")
    browser.fill("//input[@name='element_warehouse']", "prod")
    browser.fill("//input[@name='element_s3.endpoint']", "http://127.0.0.1:9")
    browser.picture(tmp_path / "form.png")
    browser.click("//button[contains(., 'Save')]")

    assert browser.text("//td[.='iceberg_formed']/following-sibling::td[1]") == "lakehouse_iceberg"
    saved = server.client.call("GET", "/connections/iceberg_formed")
    given = {name: value for name, value in json.loads(saved["extra"]).items() if value}
    expected = {"type": "sql", "warehouse": "prod", "s3.endpoint": "http://127.0.0.1:9"}
    assert (saved["host"], given) == (database, expected)
    with_port_0(server.client, "iceberg_formed")
    saved = server.client.call("GET", "/connections/iceberg_formed")
    tested = server.client.call("POST", "/connections/test", saved)
    assert tested["status"] is True
    assert "workspace is empty, which every operator needs" in tested["message"]


def with_port_0(client: Client, conn_id: str) -> None:
    """What Airflow's page sends with a test when there is no port; Airflow 3.3.1 and 3.3.2 take it
    for another port than none and refuse (https://github.com/apache/airflow/pull/73298).
    """
    conn_type = client.call("GET", f"/connections/{conn_id}")["conn_type"]
    body = {"connection_id": conn_id, "conn_type": conn_type, "port": 0}
    client.call("PATCH", f"/connections/{conn_id}", body, update_mask="port")


def test_the_api_tests_a_connection_and_keeps_its_secret(server: Server, lake: Store) -> None:
    client = server.client
    made = client.call("POST", "/connections", lake.connection("sent"))
    saved = client.call("GET", "/connections/sent")

    tested = client.call("POST", "/connections/test", saved)
    assert tested == {"status": True, "message": READ}
    refused = client.call("POST", "/connections/test", {**saved, "password": "wrong"})
    assert refused["status"] is False
    assert "s3://lake does not let this worker in" in refused["message"]

    everything = client.call("GET", "/connections"), client.call("GET", "/eventLogs", limit=1000)
    answers = json.dumps([made, saved, tested, refused, everything])
    assert '"connection_id": "sent"' in answers
    assert SECRET_KEY not in answers
