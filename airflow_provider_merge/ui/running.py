"""What works on a table now, from the notes of running statements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from airflow_provider_merge.hooks.catalog import catalog_hook_once
from airflow_provider_merge.metadata.running_notes import Running, RunningNotes
from airflow_provider_merge.metadata.snapshot_facts import time_text
from airflow_provider_merge.ui.answers import (
    OperationAnswer,
    Problem,
    RunningStatement,
    RunningStatements,
)
from airflow_provider_merge.ui.told import told_origin
from spark_jobs.contract.request import TableName
from spark_jobs.errors import RequestError

_IN_LOG: Final = "The log of its task tells what is wrong, and what to do."
Readable = Callable[[set[str]], frozenset[str]]


@dataclass
class OpenNotes:
    """The notes of the workspaces that were looked at, by connection."""

    _notes: dict[str, RunningNotes] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def of(self, connection: str) -> RunningNotes | None:
        """The notes of a connection; None: no job can use it, or leave a note.

        Raises:
            RequestError: REQUEST_INVALID: there is no such connection.
        """
        hook = catalog_hook_once(connection)
        try:
            catalog = hook.catalog_spec()
        except RequestError:
            return None
        with self._lock:
            known = self._notes.get(connection)
            # The connection may have been changed.
            if known is None or known.catalog != catalog:
                known = self._notes[connection] = RunningNotes(catalog, hook.workspace_options())
            return known


def read_running(notes: RunningNotes | None, table: TableName, may: Readable) -> RunningStatements:
    """The statements that have not ended."""
    running = [] if notes is None else notes.of_table(table)
    dags = {each.note.origin.dag_id for each in running if each.note.origin.dag_id}
    allowed = may(dags) if dags else frozenset()
    return RunningStatements(statements=[_told(each, allowed) for each in running])


def read_operation(
    notes: RunningNotes | None, table: TableName, operation_id: str, may: Readable
) -> OperationAnswer:
    """What is known of a statement, whether or not it runs."""
    if notes is None:
        return OperationAnswer(operation_id=operation_id, state="unknown")
    running = notes.of_operation(operation_id, table)
    if running is not None:
        dag_id = running.note.origin.dag_id
        return OperationAnswer(
            operation_id=operation_id,
            state="silent" if running.is_silent else "running",
            running=_told(running, may({dag_id}) if dag_id else frozenset()),
        )
    result = notes.result(operation_id, table)
    if result is None:
        return OperationAnswer(operation_id=operation_id, state="unknown")
    made, error = result.new_snapshot_id, result.error
    return OperationAnswer(
        operation_id=operation_id,
        state="ended",
        status=result.status,
        snapshot_id=None if made is None else str(made),
        # Its message may hold values of rows.
        problem=None if error is None else Problem(code=error.code, message=_IN_LOG),
    )


def _told(running: Running, readable: frozenset[str]) -> RunningStatement:
    note, share = running.note, running.note.share
    dag_id = note.origin.dag_id
    is_hidden = bool(dag_id) and dag_id not in readable
    return RunningStatement(
        operation_id=note.operation_id,
        operation=note.kind,
        # Its name says something of the DAG.
        statement="" if is_hidden else note.origin.statement,
        silent=running.is_silent,
        silent_seconds=int(running.silent_for),
        since=time_text(int(note.began * 1000)),
        told=time_text(int(note.noted * 1000)),
        phase=note.phase,
        tasks_done=share.tasks_done,
        tasks=share.tasks,
        share=share.tasks_done / share.tasks if share.tasks else None,
        rows=share.rows or None,
        run=told_origin(note.origin) if dag_id and not is_hidden else None,
        run_hidden=is_hidden,
    )
