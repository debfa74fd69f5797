"""Runs that commit, and the undo of one, for tests without the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_jobs.contract.properties import DAG_ID, OPERATION_ID, RUN_ID, STATEMENT, TASK_ID
from spark_jobs.contract.request import TableName
from spark_jobs.contract.undo import TableUndo
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.undo import Undoing


def of_run(run_id: str, operation_id: str, dag_id: str = "d", **more: str) -> dict[str, str]:
    """What a snapshot of a task of the run records."""
    return {
        OPERATION_ID: operation_id,
        DAG_ID: dag_id,
        RUN_ID: run_id,
        TASK_ID: "t",
        STATEMENT: "merge",
        **more,
    }


def undoing(run_id: str, operation_id: str = "undo", dag_id: str = "d", **more: Any) -> Undoing:
    """The undo of a run, by a task of the run ``<operation_id>-run`` of the DAG ``care``."""
    own = of_run(f"{operation_id}-run", operation_id, "care", **{STATEMENT: "undo_run"})
    return Undoing(dag_id, run_id, own, **more)


def undone(connector: Connector, name: TableName, run_id: str, operation_id: str) -> TableUndo:
    """Undo what a run did to a table."""
    assert connector.undo is not None
    return connector.undo.undone(name, undoing(run_id, operation_id))


def undone_undo(connector: Connector, name: TableName, operation_id: str, again: str) -> TableUndo:
    """Undo the undo of this operation."""
    assert connector.undo is not None
    return connector.undo.undone(name, undoing(f"{operation_id}-run", again, "care"))


def told(table: TableUndo) -> Mapping[str, int]:
    """The counts of files."""
    names = ("files_removed", "files_restored", "deletes_restored")
    return {name: getattr(table, name) for name in names}
