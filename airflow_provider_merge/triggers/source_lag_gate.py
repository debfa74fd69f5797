"""The condition that tasks have applied the changes of their sources to a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.metadata.snapshot_facts import (
    Observation,
    counted,
    newest,
    snapshot_facts,
)
from airflow_provider_merge.metadata.source_lags import (
    AppliedChanges,
    SourceLag,
    applied_changes,
    source_lag,
)
from airflow_provider_merge.metadata.table_view import TableView
from spark_jobs.contract.checks import did_you_mean
from spark_jobs.contract.durations import duration_text
from spark_jobs.errors import CatalogError, ErrorCode


@dataclass(frozen=True, slots=True)
class SourceLagGate:
    """Open once no source is behind by more than so many snapshots, or by more than a time.

    ``source``: only that table, behind ``connection:`` in another catalog; empty: each table whose
    changes a task applies. ``task_id`` and ``dag_id``, if they are not empty: only the marks of
    this task.
    """

    kind: ClassVar[str] = "source-lag"
    max_snapshots: int = 0
    max_lag_seconds: float | None = None
    source: str = ""
    dag_id: str = ""
    task_id: str = ""

    def observe(self, view: TableView) -> Observation:
        """Facts: those of the newest snapshot, and ``sources`` with the lag of each."""
        known = list(applied_changes(view.newest_first()))
        chosen = [each for each in known if self._is_meant(each)]
        if not chosen:
            self._require_source(view, known)
            return Observation(f"no retained snapshot tells of {self._wanted}; {newest(view)}")
        lags = [source_lag(each, view.other(each.connection, each.table)) for each in chosen]
        seen = "; ".join(map(_told, lags))
        latest = view.latest
        if latest is None or not all(map(self._is_near, lags)):
            return Observation(f"{seen}, expected at most {self._limit}")
        return Observation(seen, {**snapshot_facts(latest), "sources": lag_facts(lags)})

    def _require_source(self, view: TableView, known: Sequence[AppliedChanges]) -> None:
        """Fail for a source that is no table: no task will ever apply its changes.

        Raises:
            RequestError: REQUEST_INVALID, with the sources that are known.
        """
        if not self.source:
            return
        connection, _, name = self.source.rpartition(":")
        try:
            view.other(connection or None, name)
        except CatalogError as error:
            if error.code is not ErrorCode.TABLE_NOT_FOUND:
                raise
            names = sorted({each.source for each in known})
            guess = did_you_mean(self.source, names)
            told = f"The table has changes of: {', '.join(names)}." if names else ""
            remedy = f"{guess} {told}".strip()
            raise invalid("source", f"{self.source} is no table", remedy) from None

    @property
    def _wanted(self) -> str:
        task = ".".join(each for each in (self.dag_id, self.task_id) if each) or "a task"
        return f"changes of {self.source or 'a table'} that {task} has applied"

    @property
    def _limit(self) -> str:
        if self.max_lag_seconds is None:
            return counted(self.max_snapshots, "snapshot")
        return duration_text(self.max_lag_seconds)

    def _is_meant(self, applied: AppliedChanges) -> bool:
        return (
            self.source in ("", applied.source)
            and self.dag_id in ("", applied.dag_id)
            and self.task_id in ("", applied.task_id)
        )

    def _is_near(self, lag: SourceLag) -> bool:
        if lag.snapshots is None or lag.seconds is None:
            return False
        if self.max_lag_seconds is None:
            return lag.snapshots <= self.max_snapshots
        return lag.seconds <= self.max_lag_seconds


def lag_facts(lags: Sequence[SourceLag]) -> list[dict[str, object]]:
    """The lags as XCom: whose task, which table, and what is left."""
    return [
        {
            "table": lag.applied.source,
            "dag_id": lag.applied.dag_id,
            "task_id": lag.applied.task_id,
            "applied_snapshot_id": lag.applied.snapshot_id,
            "snapshots": lag.snapshots,
            "seconds": lag.seconds,
            "records": lag.records,
        }
        for lag in lags
    ]


def _told(lag: SourceLag) -> str:
    applied = lag.applied
    who = f"{applied.dag_id}.{applied.task_id} is"
    if lag.snapshots is None or lag.seconds is None:
        return f"the history of {applied.source} does not tell how far {who} behind"
    if not lag.snapshots:
        return f"{who} up to date with {applied.source}"
    count, age = counted(lag.snapshots, "snapshot"), duration_text(lag.seconds)
    return f"{who} {count} behind {applied.source}, the oldest of {age} ago"
