"""The id under which a piece of work is applied at most once, and the task that asks for it."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow_provider_merge.exceptions import invalid
from spark_jobs.contract.request import Origin

if TYPE_CHECKING:
    from airflow.sdk import Context

_NAMESPACE = uuid.UUID("6f1f6a0e-5b1c-5c55-9d53-0a3a5ad5f6c1")


def operation_id(
    *,
    dag_id: str,
    run_id: str,
    run_start_date: datetime,
    task_id: str,
    map_index: int,
    max_tries: int,
    statement: str = "",
    dry_run: bool = False,
) -> str:
    """The same for every try of one piece of work, another for every other.

    A retry changes none of the arguments, so it finds what an earlier try committed. Clearing the
    task raises ``max_tries``; clearing the finished run, or deleting and re-creating it, gives it
    another start date: the work is done again. ``try_number``, ``clear_number`` and the task
    instance's own id must not enter: they also change where the work is the same. A dry run is not
    the work that it foretells.
    """
    start = run_start_date.astimezone(UTC).isoformat(timespec="microseconds")
    parts = [dag_id, run_id, start, task_id, map_index, max_tries]
    if statement:
        parts.append(["statement", statement])
    name = json.dumps([*parts, "dry run"] if dry_run else parts)
    return str(uuid.uuid5(_NAMESPACE, name))


def task_origin(
    context: Context, retries: int, statement: str = "", dry_run_of: str = ""
) -> Origin:
    """The running task as a request names it, or its ``statement`` of that name.

    ``dry_run_of``: the task that it foretells.
    """
    ti = context["ti"]
    return Origin(
        dag_id=ti.dag_id,
        run_id=ti.run_id,
        task_id=ti.task_id,
        map_index=-1 if ti.map_index is None else ti.map_index,
        try_number=ti.try_number,
        retries=retries,
        statement=statement,
        dry_run_of=dry_run_of,
    )


def task_operation_id(context: Context, *, statement: str = "", dry_run: bool = False) -> str:
    """The id for a running task, or for its ``statement`` of that name.

    Raises:
        RequestError: REQUEST_INVALID: the run has not started.
    """
    ti, run = context["ti"], context["dag_run"]
    if run.start_date is None:
        raise invalid("dag_run.start_date", "the run has not started")
    return operation_id(
        dag_id=ti.dag_id,
        run_id=ti.run_id,
        run_start_date=run.start_date,
        task_id=ti.task_id,
        map_index=-1 if ti.map_index is None else ti.map_index,
        max_tries=ti.max_tries,
        statement=statement,
        dry_run=dry_run,
    )
