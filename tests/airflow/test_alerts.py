"""What a callback of a failed task sees: the code, the guard and the table."""

from __future__ import annotations

import json
import pickle
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException

from airflow_provider_merge.exceptions import airflow_exception, job_error
from airflow_provider_merge.task_failures import GUARDS, FinalFailure, PassingFailure
from spark_jobs.contract.result import ErrorInfo
from spark_jobs.errors import AnalysisError, DataError, ErrorCode
from tests.airflow.support import DagFile, FakeSubmitter, committed, failed

ROOT = Path(__file__).resolve().parents[2]
BAD_ROWS = ErrorInfo("TOO_MANY_BAD_ROWS", "11 records cannot be read", "Look.", retryable=False)
CONFLICT = ErrorInfo("COMMIT_CONFLICT", "somebody was there", "", retryable=True)
WRONG_ROW = ErrorInfo("NOT_NULL_VIOLATION", "column a is NULL", "Look.", retryable=False)

CALLBACK = """
import json
def tell(context):
    error = context["exception"]
    names = ("code", "table", "guard", "field", "column", "message", "remedy")
    told = {name: getattr(error, name) for name in names}
    told["failures"] = [[each.statement, each.table, each.code] for each in error.failures]
    told["kind"] = type(error).__name__
    with open(%r, "w") as file:
        json.dump(told, file)
"""


@pytest.fixture
def run(
    airflow_db: None, warehouse: Path, dag_file: Callable[[str], DagFile], tmp_path: Path
) -> Callable[[str], dict[str, Any]]:
    """Runs a task that fails, whose arguments end with ``{more}``; what its callback saw."""
    seen = tmp_path / "seen.json"

    def told(task: str) -> dict[str, Any]:
        body = CALLBACK % str(seen) + task.replace("{more}", "on_failure_callback=tell")
        assert dag_file(body).run().state == "failed"
        found: dict[str, Any] = json.loads(seen.read_text())
        return found

    return told


def test_what_the_job_refused(
    run: Callable[[str], dict[str, Any]], submitter: FakeSubmitter
) -> None:
    submitter.outcomes = [lambda request: failed(request, BAD_ROWS)]

    told = run('DeleteFromOperator(task_id="t", target="shop.orders", where="id = 1", {more})')

    assert told == {
        "code": "TOO_MANY_BAD_ROWS",
        "table": "shop.orders",
        "guard": "max_bad_rows",
        "field": "",
        "column": "",
        "message": "11 records cannot be read",
        "remedy": "Look.",
        "failures": [["", "shop.orders", "TOO_MANY_BAD_ROWS"]],
        "kind": "FinalFailure",
    }


def test_what_was_refused_before_there_was_a_job(run: Callable[[str], dict[str, Any]]) -> None:
    told = run('DeleteFromOperator(task_id="t", target="{{ \'shop.\' }}", where="id = 1", {more})')

    assert (told["code"], told["field"]) == ("REQUEST_INVALID", "target")
    assert (told["table"], told["guard"]) == ("", "")


def test_of_a_list_each_statement_that_failed(
    run: Callable[[str], dict[str, Any]], submitter: FakeSubmitter
) -> None:
    submitter.outcomes = [
        committed,
        lambda request: failed(request, WRONG_ROW),
        lambda request: failed(request, CONFLICT),
    ]

    told = run("""
StatementsOperator(task_id="many", on_failure="continue", statements=[
    delete_from("old", target="shop.orders", where="id = 1"),
    delete_from("gone", target="shop.orders", where="id = 2"),
    delete_from("late", target="shop.parcels", where="id = 3"),
], {more})
""")

    assert (told["code"], told["table"]) == ("NOT_NULL_VIOLATION", "shop.orders")
    assert told["failures"] == [
        ["gone", "shop.orders", "NOT_NULL_VIOLATION"],
        ["late", "shop.parcels", "COMMIT_CONFLICT"],
    ]
    # One of them may pass.
    assert told["kind"] == "PassingFailure"


def test_a_sensor(run: Callable[[str], dict[str, Any]]) -> None:
    told = run("""
from airflow_provider_merge.sensors.snapshot import SnapshotSensor
SnapshotSensor(task_id="t", table="shop.missing", after_id=1, {more})
""")

    assert (told["code"], told["table"]) == ("TABLE_NOT_FOUND", "shop.missing")


def test_the_kinds_are_airflows_own() -> None:
    final, passing = airflow_exception(BAD_ROWS), airflow_exception(CONFLICT)

    assert isinstance(final, FinalFailure)
    assert isinstance(final, AirflowFailException)
    assert isinstance(passing, PassingFailure)
    assert isinstance(passing, AirflowException)
    assert not isinstance(passing, AirflowFailException)
    again = pickle.loads(pickle.dumps(final))
    assert (again.code, again.guard, str(again)) == (final.code, final.guard, str(final))


def test_the_places_of_an_error_outlive_the_result() -> None:
    error = AnalysisError(
        ErrorCode.COLUMN_NOT_FOUND, "goen is not a column", "Look.", ("where",), "goen"
    )

    again = job_error(ErrorInfo.of(error))

    assert again.args == error.args
    failure = airflow_exception(again)
    assert (failure.field, failure.column) == ("where", "goen")


def test_a_limit_that_trips_is_the_guard() -> None:
    error = DataError(ErrorCode.GUARD_FAILED, "too many", "Look.", (), "max_deleted_rows")
    failure = airflow_exception(job_error(ErrorInfo.of(error)))
    assert (failure.guard, failure.column) == ("max_deleted_rows", "")


def test_the_page_of_a_dry_run_has_the_same_guards() -> None:
    script = (ROOT / "airflow_provider_merge/ui/static/preview.js").read_text()

    shown = re.findall(r'name: "(\w+)", code: "(\w+)"', script)

    # What a query found is checked, but a query has no dry run.
    assert {code: name for name, code in shown} == {
        code: name for code, name in GUARDS.items() if name != "check"
    }


class _Hook(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        """Keep what is posted."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posted.append(json.loads(body))  # type: ignore[attr-defined]
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def webhook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The address of a webhook, and what it gets."""
    server = HTTPServer(("127.0.0.1", 0), _Hook)
    server.posted = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/hook", server.posted  # type: ignore[attr-defined]
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_example_tells_a_webhook(
    airflow_db: None,
    warehouse: Path,
    submitter: FakeSubmitter,
    webhook: tuple[str, list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address, posted = webhook
    monkeypatch.setenv("AIRFLOW_VAR_ALERT_WEBHOOK", address)
    submitter.outcomes = [committed, lambda request: failed(request, BAD_ROWS)]
    from tests.airflow.conftest import HOME

    path = HOME / "dags" / "alerting.py"
    path.write_text((ROOT / "dags_examples" / "recipes" / "alerting.py").read_text())

    state = DagFile(path, "alerting").run().state

    assert state == "failed"
    (told,) = posted
    assert told["task"] == "alerting.merge"
    assert (told["code"], told["table"]) == ("TOO_MANY_BAD_ROWS", "shop.payments")
    assert told["guard"] == "max_bad_rows"
    assert "11 records cannot be read" in told["text"]
