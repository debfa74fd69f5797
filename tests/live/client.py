"""The little of Airflow's REST API that the tests need."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPException
from itertools import count
from typing import Any
from urllib.parse import quote, urlencode

from tests.support.waiting import wait_for

_BUSY = (502, 503, 504)
# What Airflow's API answers, with the status 500, when SQLite stays locked.
_LOCKED = "Database error"
ENDED = ("success", "failed")


@dataclass
class Client:
    """Calls the server at ``url`` as an administrator."""

    url: str
    _token: str = field(default="", repr=False)

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """One call; a server that is busy (a locked SQLite, a run in the queue) is asked again.

        Then the first call may have been done although its answer was lost. A repeat that finds so
        returns an empty answer.

        Raises:
            urllib.error.HTTPError: the server refused.
        """
        address = f"/api/v2{path}" + (f"?{urlencode(query)}" if query else "")
        tries = count()

        def answer() -> list[Any]:
            return self._answer(method, address, body, again=next(tries) > 0)

        return wait_for(f"{method} {path}", answer, every=0.5)[0]

    def health(self) -> dict[str, Any]:
        """The state of each component; empty while nobody answers."""
        try:
            document: dict[str, Any] = self._send("GET", "/api/v2/monitor/health")
        except (OSError, HTTPException):
            return {}
        return document

    def knows(self, dag_id: str) -> bool:
        """Whether the DAG processor has seen the DAG, whose file must have no error."""
        errors = self.call("GET", "/importErrors")["import_errors"]
        assert errors == [], errors
        try:
            self.call("GET", f"/dags/{dag_id}")
        except urllib.error.HTTPError as error:
            if error.code == HTTPStatus.NOT_FOUND:
                return False
            raise
        return True

    def trigger(self, dag_id: str, run_id: str, **body: Any) -> None:
        """Start a run by hand; without a logical date unless ``body`` says otherwise."""
        body = {"dag_run_id": run_id, "logical_date": None, "conf": {}, **body}
        self.call("POST", f"/dags/{dag_id}/dagRuns", body)

    def backfill(self, dag_id: str, first: str, last: str, *, runs: int, **how: Any) -> None:
        """A run for each day from ``first`` to ``last``, so many of them at a time.

        ``how``: further fields of the call. Airflow makes one run after the other, and stops where
        it finds SQLite locked. So the DAG is paused meanwhile; what was made goes, and it is asked
        again.
        """
        dates = {"from_date": f"{first}T00:00:00Z", "to_date": f"{last}T00:00:00Z"}
        body = {"dag_id": dag_id, "max_active_runs": runs, **dates, **how}
        self._pause(dag_id, pause=True)
        known = {*self.runs(dag_id)}
        wait_for(f"a backfill of {dag_id}", lambda: self._backfill(dag_id, body, known))
        self._pause(dag_id, pause=False)

    def backfills(self, dag_id: str) -> list[dict[str, Any]]:
        """All backfills of a DAG; ``completed_at`` is null while one goes on."""
        found: list[dict[str, Any]] = self.call("GET", "/backfills", dag_id=dag_id)["backfills"]
        return found

    def run_state(self, dag_id: str, run_id: str) -> str:
        """Such as queued, running, success, failed."""
        return str(self.call("GET", _run(dag_id, run_id))["state"])

    def ended(self, dag_id: str, run_id: str) -> str:
        """Wait for the end of a run: success or failed."""

        def state() -> str:
            found = self.run_state(dag_id, run_id)
            return found if found in ENDED else ""

        return wait_for(f"the end of {dag_id}, {run_id}", state, every=0.5)

    def delete_run(self, dag_id: str, run_id: str) -> None:
        """Delete a run with all it left."""
        self.call("DELETE", _run(dag_id, run_id))

    def tasks(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """All task instances of a run, as ``task`` has them."""
        found: list[dict[str, Any]] = self.call("GET", f"{_run(dag_id, run_id)}/taskInstances")[
            "task_instances"
        ]
        return found

    def task(self, dag_id: str, run_id: str, task_id: str) -> dict[str, Any]:
        """The task instance: ``state``, ``try_number``, ``max_tries`` and more."""
        found: dict[str, Any] = self.call("GET", f"{_run(dag_id, run_id)}/taskInstances/{task_id}")
        return found

    def mark_failed(self, dag_id: str, run_id: str, task_id: str) -> None:
        """What the button *Mark state as … failed* does."""
        path = f"{_run(dag_id, run_id)}/taskInstances/{task_id}"
        self.call("PATCH", path, {"new_state": "failed"}, update_mask="new_state")

    def clear(self, dag_id: str, run_id: str, task_id: str) -> None:
        """What the button *Clear task* does."""
        body = {
            "dry_run": False,
            "dag_run_id": run_id,
            "task_ids": [task_id],
            "only_failed": False,
            "reset_dag_runs": True,
        }
        self.call("POST", f"/dags/{dag_id}/clearTaskInstances", body)

    def xcom(self, dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> Any:
        """What the task returned."""
        path = f"{_run(dag_id, run_id)}/taskInstances/{task_id}/xcomEntries/return_value"
        value = self.call("GET", path, stringify="false", map_index=map_index)["value"]
        document: dict[str, Any] = json.loads(value) if isinstance(value, str) else value
        return document

    def set_xcom(self, dag_id: str, run_id: str, task_id: str, value: Any) -> None:
        """Replace what the task returned."""
        path = f"{_run(dag_id, run_id)}/taskInstances/{task_id}/xcomEntries/return_value"
        self.call("PATCH", path, {"value": value, "map_index": -1})

    def add_xcom(self, dag_id: str, run_id: str, task_id: str, key: str, value: Any) -> None:
        """Give a task an XCom that it has not."""
        path = f"{_run(dag_id, run_id)}/taskInstances/{task_id}/xcomEntries"
        self.call("POST", path, {"key": key, "value": value, "map_index": -1})

    def links(self, dag_id: str, run_id: str, task_id: str) -> dict[str, str | None]:
        """The extra links of a task, by their names."""
        path = f"{_run(dag_id, run_id)}/taskInstances/{task_id}/links"
        found: dict[str, str | None] = self.call("GET", path)["extra_links"]
        return found

    def asset_extras(self, dag_id: str) -> list[dict[str, Any]]:
        """The extra of every asset event that a DAG's tasks made, oldest first."""
        query = {"source_dag_id": dag_id, "order_by": "timestamp"}
        events = self.call("GET", "/assets/events", **query)["asset_events"]
        return [event["extra"] for event in events]

    def send_asset_event(self, uri: str, extra: dict[str, Any]) -> None:
        """What somebody else sends who changed an asset."""
        (asset,) = self.call("GET", "/assets", uri_pattern=uri)["assets"]
        self.call("POST", "/assets/events", {"asset_id": asset["id"], "extra": extra})

    def pause(self, dag_id: str, *, paused: bool) -> None:
        """What the switch before a DAG's name does."""
        self.call("PATCH", f"/dags/{dag_id}", {"is_paused": paused}, update_mask="is_paused")

    def start_dags(self, part: str) -> None:
        """End the pause of all DAGs that have this part in their names."""
        query = {"dag_id_pattern": part, "update_mask": "is_paused"}
        self.call("PATCH", "/dags", {"is_paused": False}, **query)

    def runs(self, dag_id: str) -> list[str]:
        """The ids of all runs."""
        runs = self.call("GET", f"/dags/{dag_id}/dagRuns")["dag_runs"]
        return [run["dag_run_id"] for run in runs]

    def log(
        self, dag_id: str, run_id: str, task_id: str, try_number: int, map_index: int = -1
    ) -> str:
        """The log of one try, one event a line."""
        try:
            events = self._events(dag_id, run_id, task_id, try_number, map_index)
        except urllib.error.HTTPError as error:
            return f"no log: {error}"
        return "\n".join(map(_line, events))

    def error_block(self, dag_id: str, run_id: str, task_id: str, try_number: int) -> str:
        """The error that the log of a failed try ends with: the text of its only exception."""
        events = self._events(dag_id, run_id, task_id, try_number)
        told = [each for each in events if isinstance(each, dict) and each.get("error_detail")]
        assert len(told) == 1, told
        assert not [each for each in events[events.index(told[0]) + 1 :] if _is_problem(each)]
        (error,) = told[0]["error_detail"]
        return str(error["exc_value"])

    def _events(
        self, dag_id: str, run_id: str, task_id: str, try_number: int, map_index: int = -1
    ) -> list[Any]:
        path = f"{_run(dag_id, run_id)}/taskInstances/{task_id}/logs/{try_number}"
        query = {"full_content": "true", "map_index": map_index}
        content: list[Any] = self.call("GET", path, **query)["content"]
        return content

    def _backfill(self, dag_id: str, body: Any, known: set[str]) -> bool:
        """Make a backfill, or nothing while SQLite is locked."""
        try:
            if self._answer("POST", "/api/v2/backfills", body):
                return True
        except urllib.error.HTTPError as error:
            # One that was broken off by the lock goes on for a moment.
            if error.code != HTTPStatus.CONFLICT:
                raise
        for made in self.backfills(dag_id):
            if made["completed_at"] is None:
                self.call("PUT", f"/backfills/{made['id']}/cancel")
        for run_id in {*self.runs(dag_id)} - known:
            self.delete_run(dag_id, run_id)
        return False

    def _pause(self, dag_id: str, *, pause: bool) -> None:
        self.call("PATCH", f"/dags/{dag_id}", {"is_paused": pause}, update_mask="is_paused")

    def _answer(self, method: str, address: str, body: Any, *, again: bool = False) -> list[Any]:
        """The only answer; none while the server is busy. ``again``: it is a repeat."""
        try:
            if not self._token:
                self._token = self._send("GET", "/auth/token")["access_token"]
            return [self._send(method, address, body)]
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            if again and _was_done(method, error.code):
                return [{}]
            if not _is_busy(method, error.code, text):
                error.add_note(text)
                raise
        except (OSError, HTTPException):
            pass
        return []

    def _send(self, method: str, address: str, body: Any = None) -> Any:
        request = urllib.request.Request(self.url + address, method=method)
        request.add_header("Accept", "application/json")
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, data, timeout=300) as response:
            text = response.read()
        return json.loads(text) if text else {}


def _is_busy(method: str, code: int, text: str) -> bool:
    """Whether the same call may be answered later.

    Airflow 3.3 cannot list the events of an asset while a run that they made is still queued: the
    run has no start yet, which its own answer requires.
    """
    if code == HTTPStatus.INTERNAL_SERVER_ERROR:
        return method == "GET" or _LOCKED in text
    return code in _BUSY


def _was_done(method: str, code: int) -> bool:
    """Whether the answer to a repeat says that an earlier call was done."""
    if method == "DELETE":
        return code == HTTPStatus.NOT_FOUND
    return method != "GET" and code == HTTPStatus.CONFLICT


def _run(dag_id: str, run_id: str) -> str:
    return f"/dags/{dag_id}/dagRuns/{quote(run_id, safe='')}"


def _is_problem(event: Any) -> bool:
    return isinstance(event, dict) and event.get("level") in ("warning", "error", "critical")


def _line(event: Any) -> str:
    if not isinstance(event, dict):
        return str(event)
    return f"{event.get('level', '')} {event.get('event', '')} {event.get('error_detail') or ''}"
