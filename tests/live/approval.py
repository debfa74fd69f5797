"""The tasks that ask people, as Airflow's pages see and answer them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.live.server import Server
from tests.support.waiting import wait_for


@dataclass(frozen=True)
class Approval:
    """A task that waits for approval."""

    server: Server
    dag_id: str
    run_id: str
    task_id: str = "approval"

    def question(self) -> dict[str, Any]:
        """What it asks, as soon as it waits for an answer: ``subject``, ``body`` and more."""
        wait_for("the question", self._is_asked)
        found: dict[str, Any] = self.server.client.call("GET", self._path)
        return found

    def approve(self) -> None:
        """Answer that it may go on."""
        answer = {"chosen_options": ["Approve"], "params_input": {}}
        self.server.client.call("PATCH", self._path, answer)

    @property
    def _path(self) -> str:
        run = f"/dags/{self.dag_id}/dagRuns/{self.run_id}"
        return f"{run}/taskInstances/{self.task_id}/-1/hitlDetails"

    def _is_asked(self) -> bool:
        """Whether it waits for an answer, and its process is known to have ended.

        Airflow takes an answer before that, within a second, for a task that failed.
        """
        tasks = self.server.client.tasks(self.dag_id, self.run_id)
        states = {each["task_id"]: each["state"] for each in tasks}
        assert not {"failed", "up_for_retry"} & set(states.values()), states
        task = f"dag_id={self.dag_id}, task_id={self.task_id}, run_id={self.run_id},"
        ended = f"TaskInstance Finished: {task}"
        log = self.server.log.read_text(errors="replace")
        return states[self.task_id] in ("deferred", "awaiting_input") and ended in log
