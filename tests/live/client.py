"""The little of Airflow's REST API that the tests need."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

from tests.live.waiting import wait_for

_BUSY = (502, 503, 504)


@dataclass
class Client:
    """Calls the server at ``url`` as an administrator."""

    url: str
    _token: str = field(default="", repr=False)

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """One call; a server that is busy (a locked SQLite) is asked again.

        Raises:
            urllib.error.HTTPError: the server refused.
        """
        if not self._token:
            self._token = self._send("GET", "/auth/token")["access_token"]
        address = f"/api/v2{path}" + (f"?{urlencode(query)}" if query else "")
        replies: list[Any] = []

        def answered() -> bool:
            try:
                replies.append(self._send(method, address, body))
            except urllib.error.HTTPError as error:
                if error.code not in _BUSY:
                    error.add_note(error.read().decode(errors="replace"))
                    raise
            except (TimeoutError, ConnectionError):
                return False
            return bool(replies)

        wait_for(f"{method} {path}", answered, every=0.5)
        return replies[0]

    def health(self) -> dict[str, Any]:
        """The state of each component; empty while nobody answers."""
        try:
            document: dict[str, Any] = self._send("GET", "/api/v2/monitor/health")
        except OSError:
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

    def trigger(self, dag_id: str, run_id: str) -> None:
        """Start a run by hand, without a logical date."""
        body = {"dag_run_id": run_id, "logical_date": None}
        self.call("POST", f"/dags/{dag_id}/dagRuns", body)

    def run_state(self, dag_id: str, run_id: str) -> str:
        """Such as queued, running, success, failed."""
        return str(self.call("GET", _run(dag_id, run_id))["state"])

    def delete_run(self, dag_id: str, run_id: str) -> None:
        """Delete a run with all it left."""
        self.call("DELETE", _run(dag_id, run_id))

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

    def xcom(self, dag_id: str, run_id: str, task_id: str) -> dict[str, Any]:
        """What the task returned."""
        path = f"{_run(dag_id, run_id)}/taskInstances/{task_id}/xcomEntries/return_value"
        value = self.call("GET", path, stringify="false")["value"]
        document: dict[str, Any] = json.loads(value) if isinstance(value, str) else value
        return document

    def asset_extras(self, dag_id: str) -> list[dict[str, Any]]:
        """The extra of every asset event that a DAG's tasks made, oldest first."""
        query = {"source_dag_id": dag_id, "order_by": "timestamp"}
        events = self.call("GET", "/assets/events", **query)["asset_events"]
        return [event["extra"] for event in events]

    def runs(self, dag_id: str) -> list[str]:
        """The ids of all runs."""
        runs = self.call("GET", f"/dags/{dag_id}/dagRuns")["dag_runs"]
        return [run["dag_run_id"] for run in runs]

    def log(self, dag_id: str, run_id: str, task_id: str, try_number: int) -> str:
        """The log of one try, one event a line."""
        path = f"{_run(dag_id, run_id)}/taskInstances/{task_id}/logs/{try_number}"
        try:
            content = self.call("GET", path, full_content="true")["content"]
        except urllib.error.HTTPError as error:
            return f"no log: {error}"
        return "\n".join(_line(each) for each in content)

    def _send(self, method: str, address: str, body: Any = None) -> Any:
        request = urllib.request.Request(self.url + address, method=method)
        request.add_header("Accept", "application/json")
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, data, timeout=60) as response:
            text = response.read()
        return json.loads(text) if text else {}


def _run(dag_id: str, run_id: str) -> str:
    return f"/dags/{dag_id}/dagRuns/{quote(run_id, safe='')}"


def _line(event: Any) -> str:
    if not isinstance(event, dict):
        return str(event)
    return f"{event.get('level', '')} {event.get('event', '')} {event.get('error_detail') or ''}"
