"""Who sees what of the pages about tables, and what nobody sees."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

from airflow_provider_merge.ui.opened import OpenTable
from airflow_provider_merge.ui.workers import Workers
from tests.airflow.support import PASSWORD, connection
from tests.airflow.test_tables_api import MADE
from tests.support.paimon_metadata import TableFiles

PATHS: dict[str, dict[str, Any]] = {
    "table": {},
    "size": {},
    "snapshots": {},
    "sizes": {},
    "partitions": {},
    "days": {},
    "schemas": {},
    "care": {},
    "running": {},
    "operation": {"operation_id": "op-1"},
    "compare": {"before": 1, "after": 1},
    "sample": {"before": 1, "after": 1},
    "preview": {"operation_id": "op-1"},
    "tables": {},
    "lags": {},
}


@pytest.fixture
def orders(warehouse: Path) -> TableFiles:
    table = TableFiles(warehouse).create()
    table.add({"2026-01-30": 5}, properties=MADE)
    return table


def test_every_path_of_the_api_is_tried_here(users: dict[str, Any]) -> None:
    app = users[""].client.app
    assert {f"/v1/{path}" for path in (*PATHS, "connections")} == set(app.openapi()["paths"])


@pytest.fixture(autouse=True)
def samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__MERGE__UI_SAMPLES", "paimon_default, bad, good")


@pytest.mark.parametrize("path", PATHS)
def test_without_the_rights_nothing_is_told(
    orders: TableFiles, users: dict[str, Any], path: str
) -> None:
    for role, expected in (("", 401), ("VIEWER", 403), ("OP", 200)):
        status, told = users[role].get(path, **PATHS[path])
        assert status == expected
        assert "2026" not in json.dumps(told) or status == 200
    assert users["VIEWER"].get(path, **PATHS[path], connection="nowhere")[0] == 403


def test_a_shared_connection_is_for_all_who_see_the_pages(
    orders: TableFiles, users: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert users["VIEWER"].told("connections") == {"connections": []}
    monkeypatch.setenv("AIRFLOW__MERGE__UI_CONNECTIONS", "other, paimon_default")
    assert users["VIEWER"].told("connections") == {
        "connections": [{"connection": "paimon_default", "type": "paimon"}]
    }
    assert users["VIEWER"].told("table")["snapshots"] == 1


@pytest.mark.parametrize("right", ["is_authorized_view", "is_authorized_custom_view"])
def test_without_the_permission_for_the_pages(
    orders: TableFiles, users: dict[str, Any], monkeypatch: pytest.MonkeyPatch, right: str
) -> None:
    asked = []

    def refuse(_: object, **details: object) -> bool:
        asked.append(str(details.get("resource_name", "PLUGINS")))
        return False

    monkeypatch.setenv("AIRFLOW__MERGE__UI_PERMISSION", "Lakehouse Tables")
    monkeypatch.setattr(SimpleAuthManager, right, refuse)
    for path, query in PATHS.items():
        assert users["ADMIN"].get(path, **query)[0] == 403
    assert users["ADMIN"].raw("table").status_code == 403
    assert users["ADMIN"].get("connections")[0] == 403
    assert set(asked) == {"PLUGINS" if right == "is_authorized_view" else "Lakehouse Tables"}


def test_runs_of_a_dag_that_may_not_be_read(
    orders: TableFiles, users: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def only_others(_: object, **details: Any) -> bool:
        return details["details"].id != "night shift"

    monkeypatch.setattr(SimpleAuthManager, "is_authorized_dag", only_others)
    assert users["ADMIN"].told("tables", writer="night shift")["tables"] == []
    for path in ("table", "snapshots", "tables", "compare"):
        text = json.dumps(users["ADMIN"].told(path, **PATHS[path]))
        assert not any(each in text for each in ("night shift", "manual__", "0a1b"))
        assert '"run_hidden": true' in text


def test_secrets_are_in_no_answer_and_no_log(
    orders: TableFiles,
    users: dict[str, Any],
    warehouse: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    extra = {"warehouse": f"{warehouse}/{PASSWORD}", "options": {"my.secret-key": PASSWORD}}
    connection(monkeypatch, "bad", conn_type="paimon", password=PASSWORD, extra=extra)
    connection(monkeypatch, "good", conn_type="paimon", extra={"warehouse": str(warehouse)})
    for name in ("paimon_default", "bad", "good"):
        for path, query in PATHS.items():
            _, told = users["ADMIN"].get(path, **query, connection=name)
            assert PASSWORD not in json.dumps(told)
    monkeypatch.setattr(OpenTable, "look", lambda _: 1 / len(PASSWORD[:0]))
    status, told = users["ADMIN"].get("table")
    assert (status, told["code"]) == (502, "INTERNAL_ERROR")
    assert "ZeroDivisionError" in caplog.text
    assert PASSWORD not in caplog.text + "".join(capfd.readouterr())


@dataclass
class Slow:
    """The workers, and the threads that they gave to the table that hangs."""

    workers: Workers
    threads: SimpleQueue[threading.Thread]


@pytest.fixture
def slow(users: dict[str, Any], warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    """The table ``orders`` of the connection ``slow`` hangs until the test ends."""
    connection(monkeypatch, "slow", conn_type="paimon", extra={"warehouse": str(warehouse)})
    held, look = threading.Event(), OpenTable.look
    threads: SimpleQueue[threading.Thread] = SimpleQueue()

    def hang(table: OpenTable) -> None:
        if table.connection == "slow" and table.name.table == "orders":
            threads.put(threading.current_thread())
            held.wait(60)
        look(table)

    monkeypatch.setattr(OpenTable, "look", hang)
    workers = Workers(seconds=0.2)
    monkeypatch.setattr(users["ADMIN"].client.app.state.service, "workers", workers)
    yield Slow(workers, threads)
    held.set()


def test_a_store_that_hangs_delays_only_its_own_tables(
    orders: TableFiles, users: dict[str, Any], slow: Slow
) -> None:
    assert users["ADMIN"].get("table", connection="slow")[1]["code"] == "TIMED_OUT"
    slow.workers.seconds = 25  # a busy machine reads slowly; the slow store is held for longer
    assert users["ADMIN"].get("table")[0] == 200


def test_a_table_that_hangs_takes_one_thread_of_its_connection(
    orders: TableFiles, users: dict[str, Any], warehouse: Path, slow: Slow
) -> None:
    TableFiles(warehouse, "others").create().add({"2026-01-30": 5})
    for _ in range(10):
        assert users["ADMIN"].get("table", connection="slow")[1]["code"] == "TIMED_OUT"
    slow.workers.seconds = 25
    assert users["ADMIN"].get("table", connection="slow", table="others")[0] == 200
    assert slow.threads.get(timeout=25)  # type: ignore[truthy-bool]
    assert slow.threads.empty()


def test_no_thread_of_the_pages_keeps_the_server_from_ending(
    orders: TableFiles, users: dict[str, Any], slow: Slow
) -> None:
    users["ADMIN"].get("table", connection="slow")
    assert slow.threads.get(timeout=25).daemon


def test_a_pipe_in_place_of_a_snapshot(
    orders: TableFiles, users: dict[str, Any], warehouse: Path
) -> None:
    (path,) = warehouse.rglob("snapshot-1")
    path.unlink()
    os.mkfifo(path)
    status, told = users["ADMIN"].get("table")
    assert (status, told["code"]) == (502, "METADATA_UNREADABLE")
    listed = users["ADMIN"].told("tables")["tables"]
    assert [each["problem"]["code"] for each in listed] == ["METADATA_UNREADABLE"]


def test_who_is_not_logged_in_reads_no_description_of_the_api(users: dict[str, Any]) -> None:
    assert users[""].raw("v1/openapi.json").status_code == 401
    assert users["ADMIN"].raw("v1/openapi.json").json()["paths"].keys() >= {"/v1/tables"}


def test_pages_are_for_those_who_are_logged_in(users: dict[str, Any]) -> None:
    page = users["ADMIN"].raw("table")
    assert page.headers["content-type"].startswith("text/html")
    assert "script-src 'self'" in page.headers["content-security-policy"]
    login = users[""].raw("table", accept="text/html")
    assert (login.status_code, "/auth/login" in login.headers["location"]) == (307, True)


def test_what_every_process_of_airflow_loads_is_small() -> None:
    costly = ("fastapi", "airflow_provider_merge.ui", "spark_jobs.contract.request")
    code = f"import sys, airflow_provider_merge.plugin; print(sys.modules.keys() & {set(costly)})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"
