"""Where operations keep their files: paths below the workspace, and file names.

The job stores its result and its temporary files there; the operator reads the result and removes
what a killed job left.

A job notes its operation before it changes anything; the operator removes the note when its task
has succeeded. So a noted operation that a later one of the same task run finds was cut off: its
task was marked or cleared while it ran, or its worker was lost.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from datetime import timedelta
from typing import Final

from spark_jobs.contract.request import Origin

FOLDER: Final = "_operations"
# What marks refer to; nothing in it is ever changed or outdated.
MARKS_FOLDER: Final = "_marks"
# Written by the first job of a warehouse on an object store, and never removed.
CONDITIONAL_PUT_PROBE: Final = f"{FOLDER}/conditional-put"
_DRY_RUN: Final = "_dry_run-"
_RESULT: Final = ".json"
_REFUSED: Final = ".refused.json"
_NOTE: Final = ".tries"
_BASE: Final = ".base"
_CHANGE: Final = ".change"
_RUNNING: Final = ".running"
_FENCE: Final = ".fence"
_CLOCK: Final = ".clock"
_PLAN: Final = ".plan"
_SIDE: Final = ".rows"
_PREVIEW: Final = ".preview"
_RUN: Final = "[0-9a-f]{32}"
_SCRATCH: Final = re.compile(f".+-{_RUN}")
_KINDS: Final = (
    *(_RESULT, _REFUSED, _NOTE, _BASE, _CHANGE, _RUNNING, _FENCE, _CLOCK, _PLAN),
    _PREVIEW,
)
_ENDINGS: Final = "|".join(map(re.escape, _KINDS))
_MEMORY: Final = re.compile(rf"[\w-]+({_ENDINGS})")
# No statement runs this long, and no retry of a task comes this late: anything older was left by a
# job that was killed and not retried.
ABANDONED_AFTER: Final = timedelta(days=7)
# A retry that starts later than this after the try that did the work may not find its result.
RESULTS_KEPT: Final = timedelta(days=30)
_NAMESPACE: Final = uuid.UUID("c4d1b6de-30f4-5d6e-8a39-0d4fb4a2d9c7")
# Nobody clears a task this often without any of its operations succeeding.
_MOST: Final = 50
_UNFINISHED: Final = re.compile(r"\.(.+)\.[0-9a-f]{32}\.tmp", re.DOTALL)


def result_path(operation_id: str, *, refused: bool = False) -> str:
    """The file with an operation's result.

    ``refused``: the file with the failure of a later run, after an earlier run succeeded.
    """
    return f"{FOLDER}/{operation_id}{_REFUSED if refused else _RESULT}"


def dry_run_folder(operation_id: str) -> str:
    """The folder for everything that a dry run stores."""
    return f"{_DRY_RUN}{operation_id}"


def dry_run_result_path(operation_id: str) -> str:
    """The file with the result of a dry run."""
    return f"{dry_run_folder(operation_id)}/result{_RESULT}"


def note_path(task_run: str) -> str:
    """The file that notes the operations of the task run with the id ``task_run``."""
    return f"{FOLDER}/{task_run}{_NOTE}"


def base_path(operation_id: str) -> str:
    """The file that notes on which snapshot an operation builds, while it runs."""
    return f"{FOLDER}/{operation_id}{_BASE}"


def change_path(operation_id: str) -> str:
    """The file that notes what an operation is about to change, until its result is stored."""
    return f"{FOLDER}/{operation_id}{_CHANGE}"


def operation_of_base(name: str) -> str | None:
    """The operation whose base a file in ``FOLDER`` notes; None for any other file."""
    return name.removesuffix(_BASE) if name.endswith(_BASE) else None


def running_path(operation_id: str) -> str:
    """The file that is there from the first run of an operation until its result is stored."""
    return f"{FOLDER}/{operation_id}{_RUNNING}"


def operation_of_running(name: str) -> str | None:
    """The operation that a file in ``FOLDER`` says to run; None for any other file."""
    return name.removesuffix(_RUNNING) if name.endswith(_RUNNING) else None


def plan_path(operation_id: str) -> str:
    """The file that keeps a task's plan for its retries."""
    return f"{FOLDER}/{operation_id}{_PLAN}"


def preview_path(operation_id: str) -> str:
    """The file that keeps some of the rows that a dry run would change."""
    return f"{FOLDER}/{operation_id}{_PREVIEW}"


def new_clock_name() -> str:
    """The name of a file that is written to learn the store's time, and removed at once."""
    return f"{uuid.uuid4().hex}{_CLOCK}"


def fence_path(operation_id: str, try_number: int) -> str:
    """The file that is there once this try of the operation was given up, whatever is in it."""
    return f"{FOLDER}/{operation_id}-{try_number}{_FENCE}"


def new_scratch_folder(operation_id: str, try_number: int) -> str:
    """A folder for the temporary files of one run of a try of an operation."""
    return f"{FOLDER}/{_run_of(f'{operation_id}-{try_number}')}"


def new_output_folder(operation_id: str) -> str:
    """The name of a folder for the rows of one run of a query."""
    return _run_of(operation_id)


def new_source_folder(scratch: str) -> str:
    """A folder in a run's scratch folder for the rows and bad records of one source."""
    return f"{scratch}/source-{uuid.uuid4().hex}"


def new_changes_folder(scratch: str) -> str:
    """A folder in a run's scratch folder for the rows that it changes."""
    return f"{scratch}/changes-{uuid.uuid4().hex}"


def new_side_folder(operation_id: str, catalog: str) -> str:
    """A folder for rows that one run of an operation leaves in other tables than its target.

    It is none of the run's scratch folders: it is there until these rows are. ``catalog`` is the
    mark of the catalog, as others may have the same workspace.
    """
    return f"{FOLDER}/{operation_id}.{catalog}.{uuid.uuid4().hex}{_SIDE}"


def new_side_part(folder: str, kind: str) -> str:
    """A folder in ``folder`` for the rows of one kind, of one attempt to publish."""
    return f"{folder}/{kind}-{uuid.uuid4().hex}"


def operation_of_side_folder(name: str, catalog: str) -> str | None:
    """The operation on a catalog whose rows for other tables a folder has; None: it has none."""
    found = re.fullmatch(rf"(.+)\.{re.escape(catalog)}\.{_RUN}{re.escape(_SIDE)}", name)
    return found[1] if found else None


def new_lookup_folder(scratch: str) -> str:
    """A folder in a run's scratch folder for the source's rows by their keys.

    No other run's has its name, as executors remember what they read in it.
    """
    return f"{scratch}/lookup-{uuid.uuid4().hex}"


def mark_document_path(mark: str, digest: str) -> str:
    """The file with a part of what the mark with the property ``mark`` stands for."""
    return f"{MARKS_FOLDER}/{_mark_folder(mark)}/{digest}"


def mark_notes_folder(table: str) -> str:
    """The folder of the notes of all marks that ``table`` got."""
    return f"{MARKS_FOLDER}/table-{hashlib.sha256(table.encode()).hexdigest()[:32]}"


def mark_note_path(table: str, mark: str) -> str:
    """The file that notes the newest marks of this name that ``table`` got."""
    return f"{mark_notes_folder(table)}/{_mark_folder(mark)}{_RESULT}"


def mark_of_note(name: str) -> str | None:
    """The last part of the name of the mark that a file notes; None for any other file."""
    return name.removesuffix(_RESULT) if name.endswith(_RESULT) else None


def lease_path(scratch: str) -> str:
    """The file in a run's scratch folder without which the run may not publish."""
    return f"{scratch}/lease"


def is_scratch(name: str) -> bool:
    """Whether a folder in ``FOLDER`` holds the temporary files of a run of any operation."""
    return _SCRATCH.fullmatch(name) is not None


def is_scratch_of(operation_id: str, name: str, last_try: int | None = None) -> bool:
    """Whether a folder has the name that a run of this operation gave its files.

    ``last_try``: not those of later tries. Older releases named no try.
    """
    found = re.fullmatch(rf"{re.escape(operation_id)}-(?:(\d+)-)?{_RUN}", name)
    return found is not None and (last_try is None or int(found[1] or 0) <= last_try)


def is_dry_run(name: str) -> bool:
    """Whether a folder in the workspace belongs to a dry run."""
    return name.startswith(_DRY_RUN)


def is_unfinished_result_of(operation_id: str, name: str) -> bool:
    """Whether a file in ``FOLDER`` is an unfinished result of this operation."""
    return finished_name(name) in (f"{operation_id}{_RESULT}", f"{operation_id}{_REFUSED}")


def is_memory(name: str) -> bool:
    """Whether a file in ``FOLDER`` is a result, a note or a probe, finished or not."""
    return _MEMORY.fullmatch(finished_name(name) or name) is not None


def _mark_folder(mark: str) -> str:
    return mark.rpartition(".")[2]


def _run_of(operation_id: str) -> str:
    return f"{operation_id}-{uuid.uuid4().hex}"


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


def unfinished_name(name: str) -> str:
    """A new temporary name, in the same folder, for the file that will be called ``name``."""
    return f".{name}.{uuid.uuid4().hex}.tmp"


def finished_name(name: str) -> str | None:
    """The final name of the unfinished file ``name``; None if it is not an unfinished file."""
    found = _UNFINISHED.fullmatch(name)
    return found[1] if found else None
