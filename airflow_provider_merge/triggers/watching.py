"""Every snapshot of a table, in order and once, from a position on."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

from airflow_provider_merge.metadata.model import Snapshot
from airflow_provider_merge.metadata.snapshot_facts import snapshot_facts
from airflow_provider_merge.metadata.table_view import TableView
from airflow_provider_merge.triggers.polling import Poll, answers
from spark_jobs.errors import JobError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """The snapshot up to which everything is told; id 0: nothing is, as the table has none."""

    snapshot_id: int
    time_millis: int

    @classmethod
    def of(cls, snapshot: Snapshot | None) -> StreamPosition:
        """The position of a snapshot."""
        return cls(snapshot.snapshot_id, snapshot.time_millis) if snapshot else cls(0, 0)

    def document(self) -> dict[str, int]:
        """The position as JSON."""
        return {"snapshot_id": self.snapshot_id, "time_millis": self.time_millis}


async def new_snapshots(
    poll: Poll, start: StreamPosition | None
) -> AsyncGenerator[tuple[dict[str, Any], StreamPosition], None]:
    """Payload and position of each snapshot after ``start``; None: after the newest of now.

    The first item tells the start, when it was None, with an empty payload. Errors are logged, and
    the next poll goes on.
    """
    told_position = start

    def question(view: TableView) -> tuple[StreamPosition | None, list[Snapshot]]:
        position = told_position
        return position, _after(view, position)

    async with answers(poll, question) as stream:
        async for answer in stream:
            if isinstance(answer, JobError):
                log.warning("%s could not be polled: %s", poll.table, answer)
                continue
            if isinstance(answer, Exception):
                raise answer
            position, snapshots = answer
            if position != told_position:
                continue  # found while the snapshots of the poll before were being told
            if told_position is None:
                told_position = StreamPosition.of(snapshots[-1] if snapshots else None)
                yield {}, told_position
                continue
            for snapshot in snapshots:
                told_position = StreamPosition.of(snapshot)
                yield {"table": poll.table, **snapshot_facts(snapshot)}, told_position


def _after(view: TableView, told: StreamPosition | None) -> list[Snapshot]:
    """The snapshots after a position, oldest first; None: only the newest."""
    if told is None:
        return [view.latest] if view.latest else []
    snapshots = list(view.after(told.snapshot_id, told.time_millis))
    missed = view.missed(told.snapshot_id, snapshots[-1]) if snapshots else None
    if missed:
        log.error(
            "%s: snapshots %s to %s expired before they were seen; their changes are in snapshot "
            "%s. Retain snapshots for longer than a triggerer may be down.",
            *(view.table.name, *missed, snapshots[-1].snapshot_id),
        )
    elif snapshots and view.lost(told.snapshot_id) and snapshots[-1] == view.oldest:
        log.error(
            "%s: snapshot %s has expired, and others may have before they were seen; their changes "
            "are in snapshot %s. Retain snapshots for longer than a triggerer may be down.",
            *(view.table.name, told.snapshot_id, snapshots[-1].snapshot_id),
        )
    return snapshots[::-1]
