"""What the pages tell of statements that run, and of those that do not any more."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

from airflow_provider_merge.hooks.catalog import catalog_hook
from airflow_provider_merge.metadata import running_notes
from spark_jobs.contract.operation_files import ABANDONED_AFTER, result_path, running_path
from spark_jobs.contract.progress_note import SILENT_AFTER, ProgressNote, Share, catalog_mark
from spark_jobs.contract.request import Origin
from spark_jobs.contract.result import ErrorInfo
from tests.airflow.support import committed as committed_result
from tests.airflow.support import connection, example_request, failed
from tests.airflow.tables_ui_client import Caller
from tests.support.paimon_metadata import TableFiles

pytestmark = pytest.mark.slow
ORIGIN = Origin("night shift", "manual__2026-01-31", "merge", -1, 2)
# Room for the result.
ROOM = "\n" * 32_768


@pytest.fixture
def admin(users: dict[str, Caller], monkeypatch: pytest.MonkeyPatch) -> Caller:
    for name in ("_FRESH", "_LISTED_FOR"):
        monkeypatch.setattr(running_notes, name, 0.0)
    return users["ADMIN"]


@pytest.fixture
def orders(warehouse: Path) -> TableFiles:
    table = TableFiles(warehouse).create()
    table.add({"2026-01-30": 5})
    return table


def note(warehouse: Path, operation_id: str = "op-1", age: float = 0.0, **changes: Any) -> Path:
    """Leave a note, as a job writes it, so many seconds ago."""
    mark = catalog_mark(catalog_hook("paimon_default").catalog_spec())
    now = time.time()
    fields = {
        "operation_id": operation_id,
        "kind": "merge",
        "table": "shop.orders",
        "catalog": mark,
        "origin": ORIGIN,
        "began": now - 90,
        "noted": now,
        "phase": "write",
        "share": Share(37, 200, 1_234_567),
    }
    path = warehouse / running_path(operation_id)
    path.parent.mkdir(exist_ok=True)
    path.write_text(ProgressNote(**{**fields, **changes}).to_json() + ROOM)
    os.utime(path, (now - age, now - age))
    return path


def test_who_since_when_and_how_far(orders: TableFiles, warehouse: Path, admin: Caller) -> None:
    note(warehouse)

    (told,) = admin.told("running")["statements"]

    assert told["run"]["dag_id"] == "night shift"
    assert told["run"]["page"].endswith("/tasks/merge?try_number=2")
    assert (told["operation"], told["phase"], told["silent"]) == ("merge", "write", False)
    assert (told["tasks_done"], told["tasks"], told["share"]) == (37, 200, 0.185)
    assert told["rows"] == 1_234_567
    assert told["since"] < told["told"]


def test_the_newest_comes_first_and_each_table_has_its_own(
    orders: TableFiles, warehouse: Path, admin: Caller
) -> None:
    note(warehouse, "old", began=time.time() - 900)
    note(warehouse, "new")
    note(warehouse, "other", table="shop.others")
    note(warehouse, "main", table="Shop.Orders$branch_main", began=1.0)
    note(warehouse, "elsewhere", catalog="0" * 32)

    told = admin.told("running")["statements"]

    assert [each["operation_id"] for each in told] == ["new", "old", "main"]


def test_nothing_is_told_of_a_statement_of_seconds(
    orders: TableFiles, warehouse: Path, admin: Caller
) -> None:
    note(warehouse).write_text(ROOM)
    note(warehouse, "empty").write_text("")

    assert admin.told("running") == {"statements": []}


HOSTILE = [
    "{",
    "[" * 50_000,
    "null",
    '{"operation_id": "x"}',
    "x" * 70_000,
    '{"began": NaN}',
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:20])
def test_a_note_that_is_none(orders: TableFiles, warehouse: Path, admin: Caller, text: str) -> None:
    note(warehouse, "bad").write_text(text)
    note(warehouse, "good")
    for number, time_of in enumerate((float("nan"), 1e300, -1.0)):
        note(warehouse, f"time-{number}", began=time_of)

    told = admin.told("running")["statements"]

    assert [each["operation_id"] for each in told] == ["good"]


def test_a_driver_that_was_killed(orders: TableFiles, warehouse: Path, admin: Caller) -> None:
    note(warehouse, age=SILENT_AFTER + 60)

    (told,) = admin.told("running")["statements"]

    assert told["silent"]
    assert told["silent_seconds"] >= SILENT_AFTER + 60
    assert admin.told("operation", operation_id="op-1")["state"] == "silent"


def test_one_that_was_killed_days_ago(orders: TableFiles, warehouse: Path, admin: Caller) -> None:
    note(warehouse, age=ABANDONED_AFTER.total_seconds() + 60)

    assert admin.told("running") == {"statements": []}
    assert admin.told("operation", operation_id="op-1")["state"] == "unknown"


def store(warehouse: Path, result: Any) -> None:
    path = warehouse / result_path("op-1")
    path.parent.mkdir(exist_ok=True)
    path.write_text(result.to_json())


def test_one_that_has_ended(orders: TableFiles, warehouse: Path, admin: Caller) -> None:
    request = example_request(operation_id="op-1")
    store(warehouse, committed_result(request))

    told = admin.told("operation", operation_id="op-1")

    assert (told["state"], told["status"], told["snapshot_id"]) == ("ended", "committed", "8")


def test_a_note_that_came_after_the_end(orders: TableFiles, warehouse: Path, admin: Caller) -> None:
    note(warehouse, age=SILENT_AFTER + 60)
    request = example_request(operation_id="op-1")
    store(warehouse, replace(committed_result(request), try_number=2))

    assert admin.told("running") == {"statements": []}
    assert admin.told("operation", operation_id="op-1")["state"] == "ended"


def test_one_that_failed_tells_no_value_of_a_row(
    orders: TableFiles, warehouse: Path, admin: Caller
) -> None:
    request = example_request(operation_id="op-1")
    wrong = ErrorInfo("NOT_NULL_VIOLATION", "a is NULL where b is 'Ada'", "", retryable=False)
    store(warehouse, failed(request, wrong))

    told = admin.told("operation", operation_id="op-1")

    assert (told["state"], told["problem"]["code"]) == ("ended", "NOT_NULL_VIOLATION")
    assert "Ada" not in json.dumps(told)


def test_one_that_ended_long_ago_or_never_was(
    orders: TableFiles, warehouse: Path, admin: Caller
) -> None:
    assert admin.told("operation", operation_id="op-1") == {
        "operation_id": "op-1",
        "state": "unknown",
        "running": None,
        "status": None,
        "snapshot_id": None,
        "problem": None,
    }


def test_that_of_another_table_is_not_told(
    orders: TableFiles, warehouse: Path, admin: Caller
) -> None:
    note(warehouse, table="shop.secret")
    request = example_request(operation_id="op-2")
    store(warehouse, replace(committed_result(request), target="shop.secret"))

    for operation_id in ("op-1", "op-2"):
        told = admin.told("operation", operation_id=operation_id)
        assert told["state"] == "unknown"


@pytest.mark.parametrize("operation_id", ["", "../../etc/passwd", "a/b", "x" * 200])
def test_no_other_file_is_read(orders: TableFiles, admin: Caller, operation_id: str) -> None:
    assert admin.get("operation", operation_id=operation_id)[0] == 400


def test_runs_of_a_dag_that_may_not_be_read(
    orders: TableFiles, warehouse: Path, admin: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    note(warehouse, origin=replace(ORIGIN, statement="bonus of the board"))
    monkeypatch.setattr(SimpleAuthManager, "is_authorized_dag", lambda *_, **__: False)

    told = admin.told("running")
    (statement,) = told["statements"]

    assert statement["run_hidden"]
    text = json.dumps([told, admin.told("operation", operation_id="op-1")])
    assert not any(each in text for each in ("night shift", "manual__", "bonus"))


def test_a_connection_that_no_job_can_use(
    users: dict[str, Caller], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Without a warehouse or a workspace, no job can leave a note.
    uri = f"sqlite:///{tmp_path}/catalog.db"
    connection(monkeypatch, "bare", conn_type="lakehouse_iceberg", host=uri, extra={"type": "sql"})

    told = users["ADMIN"].told("running", connection="bare")

    assert told == {"statements": []}
