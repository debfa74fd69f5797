"""Notes of the operations of a task run that are not known to have ended.

A job notes its operation before it changes anything; the operator removes the note when its task
has succeeded. So a noted operation that a later one of the same task run finds was cut off: its
task was marked or cleared while it ran, or its worker was lost.
"""

from __future__ import annotations

import json
import uuid
from typing import Final

from spark_jobs.contract.operation_files import note_path
from spark_jobs.contract.request import Origin

_NAMESPACE: Final = uuid.UUID("c4d1b6de-30f4-5d6e-8a39-0d4fb4a2d9c7")
# Nobody clears a task this often without any of its operations succeeding.
_MOST: Final = 50


def note_file(origin: Origin) -> str | None:
    """The path of the task run's note below the workspace; None if the request has no task."""
    if not origin.dag_id:
        return None
    parts = [origin.dag_id, origin.run_id, origin.task_id, origin.map_index]
    if origin.statement:
        parts.append(origin.statement)
    return note_path(str(uuid.uuid5(_NAMESPACE, json.dumps(parts))))


def note_text(operation_ids: list[str]) -> str:
    """The content of a note."""
    return json.dumps({"operations": operation_ids[-_MOST:]})


def noted_operations(text: str) -> list[str]:
    """The operations in a note's content, oldest first.

    Raises:
        ValueError: it is not the content of a note.
    """
    document = json.loads(text)
    operations = document.get("operations") if isinstance(document, dict) else None
    if not isinstance(operations, list) or not all(isinstance(each, str) for each in operations):
        raise ValueError("not a list of operations")
    return operations
