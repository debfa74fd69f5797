"""What became of a task while its job was at work."""

from __future__ import annotations

import logging
from typing import Any

log = logging.getLogger(__name__)

# Of a task that somebody marked or cleared, or whose run was stopped. Any other state, such as that
# of a task in a test run, says nothing.
_ENDED = ("failed", "success", "skipped", "removed", "upstream_failed", "restarting")


def task_end(ti: Any) -> str:
    """What Airflow tells of a running task; empty as long as it goes on, or nothing is known."""
    map_index = -1 if ti.map_index is None else ti.map_index
    name = ti.task_id if map_index < 0 else f"{ti.task_id}_{map_index}"
    try:
        found = ti.get_task_states(
            dag_id=ti.dag_id, task_ids=[ti.task_id], run_ids=[ti.run_id], map_index=map_index
        )
        state = str(found.get(ti.run_id, {}).get(name))
    except Exception as error:  # noqa: BLE001 - for want of an answer no work is lost
        log.warning("Airflow could not be asked whether the task still runs: %s", error)
        return ""
    return f"its state is {state}" if state in _ENDED else ""
