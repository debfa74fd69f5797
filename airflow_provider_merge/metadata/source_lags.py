"""How far a table is behind the tables whose changes tasks apply to it, from metadata alone.

The newest mark of each incremental source says which of the source's snapshots was applied last
(``spark_jobs.contract.marks``). What came behind it is the lag.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from airflow_provider_merge.metadata.model import Snapshot
from airflow_provider_merge.metadata.table_view import TableView
from spark_jobs.contract import properties
from spark_jobs.contract.marks import marked_tables
from spark_jobs.contract.undone import Undone


@dataclass(frozen=True, slots=True)
class AppliedChanges:
    """The newest snapshot of ``table`` whose changes a task applied; 0: the table had none.

    ``statement`` is the name of the statement in a list, else empty. ``connection``: the table is
    in its catalog; None: in that of the target.
    """

    dag_id: str
    task_id: str
    statement: str
    table: str
    snapshot_id: int
    connection: str | None

    @property
    def source(self) -> str:
        """The table, behind its connection if it has one."""
        return self.table if self.connection is None else f"{self.connection}:{self.table}"


@dataclass(frozen=True, slots=True)
class SourceLag:
    """How far a task is behind one of its sources.

    ``snapshots`` counts those that changed rows and are not applied, ``seconds`` is the age of the
    oldest of them: both 0 where nothing is left. ``records`` is by how many stored rows the source
    has grown. None: the source's history does not tell, as after a rollback or an expiry.
    """

    applied: AppliedChanges
    snapshots: int | None
    seconds: float | None
    records: int | None


def applied_changes(newest_first: Iterable[Snapshot]) -> Iterator[AppliedChanges]:
    """What the marks in a table's snapshots say; of each mark the newest that counts."""
    undone, known = Undone(), set[str]()
    for snapshot in newest_first:
        snapshot_properties = snapshot.properties
        if not undone.counts(snapshot_properties):
            continue
        for name, mark in marked_tables(snapshot_properties).items():
            if name not in known:
                known.add(name)
                yield AppliedChanges(
                    dag_id=snapshot_properties.get(properties.DAG_ID, ""),
                    task_id=snapshot_properties.get(properties.TASK_ID, ""),
                    statement=snapshot_properties.get(properties.STATEMENT_NAME, ""),
                    table=mark.table,
                    snapshot_id=mark.snapshot_id,
                    connection=mark.connection,
                )


def source_lag(applied: AppliedChanges, source: TableView) -> SourceLag:
    """The lag behind ``source``, the table that ``applied`` names.

    Raises:
        JobError: the source's metadata cannot be read.
    """
    latest = source.latest
    if latest is None or latest.snapshot_id == applied.snapshot_id:
        is_known = latest is not None or not applied.snapshot_id
        return SourceLag(applied, *((0, 0.0, 0) if is_known else (None, None, None)))
    before = source.table.snapshot(applied.snapshot_id) if applied.snapshot_id else None
    behind = source.history.after(applied.snapshot_id)
    if behind is None or (before is None and not _begins_at_the_start(applied, source)):
        return SourceLag(applied, None, None, None)
    changed = [each for each in source.after_id(applied.snapshot_id) if not each.keeps_rows]
    oldest = min((each.time_millis for each in changed), default=None)
    seconds = 0.0 if oldest is None else max(0.0, time.time() - oldest / 1000)
    return SourceLag(applied, len(changed), round(seconds, 3), _grown(before, latest))


def _begins_at_the_start(applied: AppliedChanges, source: TableView) -> bool:
    return not applied.snapshot_id and source.history.is_complete


def _grown(before: Snapshot | None, latest: Snapshot) -> int | None:
    counts = (0 if before is None else before.total_record_count, latest.total_record_count)
    return None if counts[0] is None or counts[1] is None else counts[1] - counts[0]
