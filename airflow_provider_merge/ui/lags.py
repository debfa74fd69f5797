"""How far a table is behind its sources, as the API tells it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Final

from pydantic import BaseModel

from airflow_provider_merge.metadata.source_lags import (
    AppliedChanges,
    SourceLag,
    applied_changes,
    source_lag,
)
from airflow_provider_merge.ui.answers import Problem
from airflow_provider_merge.ui.opened import OpenTable
from spark_jobs.errors import JobError

# Snapshots that are searched for marks.
_MOST_SEARCHED: Final = 500


class SourceLagAnswer(BaseModel):
    """How far a task is behind a source whose changes it applies; None: not known, or hidden.

    ``snapshots`` and ``seconds``: how many are left, and the age of the oldest. ``records``: by how
    many stored rows the source has grown. ``problem``: the source cannot be read.
    """

    source: str
    dag_id: str | None
    task_id: str | None
    applied_snapshot_id: str
    snapshots: int | None
    seconds: float | None
    records: int | None
    problem: Problem | None


class SourceLags(BaseModel):
    """The sources whose changes tasks apply to a table, as its newest 500 snapshots tell."""

    sources: list[SourceLagAnswer]


def read_lags(table: OpenTable, readable: Callable[[set[str]], frozenset[str]]) -> SourceLags:
    """The sources whose changes tasks apply to the table, by name.

    A DAG that the user may not read is not named.
    """
    newest = islice(table.view.newest_first(), _MOST_SEARCHED)
    applied = sorted(applied_changes(newest), key=lambda each: (each.table, each.task_id))
    allowed = readable({each.dag_id for each in applied}) if applied else frozenset()
    return SourceLags(sources=[_told(table, each, each.dag_id in allowed) for each in applied])


def _told(table: OpenTable, applied: AppliedChanges, is_named: bool) -> SourceLagAnswer:
    lag, problem = SourceLag(applied, None, None, None), None
    try:
        # Who may look at this connection may not look at each other one.
        if applied.connection is None:
            lag = source_lag(applied, table.view.other(None, applied.table))
    except JobError as error:
        problem = Problem(code=error.code.name, message=error.message, remedy=error.remedy)
    return SourceLagAnswer(
        source=applied.source,
        dag_id=applied.dag_id if is_named else None,
        task_id=applied.task_id if is_named else None,
        applied_snapshot_id=str(applied.snapshot_id),
        snapshots=lag.snapshots,
        seconds=lag.seconds,
        records=lag.records,
        problem=problem,
    )
