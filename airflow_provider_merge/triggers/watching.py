"""Every snapshot of a table, in order and once, from a place on."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from airflow_provider_merge.gates import snapshot_facts
from airflow_provider_merge.metadata.look import Look
from airflow_provider_merge.metadata.paimon import Snapshot
from airflow_provider_merge.triggers.polling import Poll, answers
from spark_jobs.errors import JobError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Place:
    """The snapshot up to which everything is told; id 0: nothing is, as the table has none."""

    snapshot_id: int
    time_millis: int

    @classmethod
    def of(cls, snapshot: Snapshot | None) -> Place:
        """The place of a snapshot."""
        return cls(snapshot.snapshot_id, snapshot.time_millis) if snapshot else cls(0, 0)

    def document(self) -> dict[str, int]:
        """The place as JSON."""
        return {"snapshot_id": self.snapshot_id, "time_millis": self.time_millis}


async def new_snapshots(
    poll: Poll, start: Place | None
) -> AsyncIterator[tuple[dict[str, Any], Place]]:
    """Payload and place of each snapshot after ``start``; None: after the newest of the first look.

    The first item tells the start, when it was None, with an empty payload. Errors are logged, and
    the next look goes on.
    """
    told = start

    def question(look: Look) -> tuple[Place | None, list[Snapshot]]:
        place = told
        return place, _after(look, place)

    async with answers(poll, question) as stream:
        async for answer in stream:
            if isinstance(answer, JobError):
                log.warning("%s could not be polled: %s", poll.table, answer)
                continue
            if isinstance(answer, Exception):
                raise answer
            place, found = answer
            if place != told:
                continue  # looked for while the snapshots of the look before were being told
            if told is None:
                told = Place.of(found[-1] if found else None)
                yield {}, told
                continue
            for snapshot in found:
                told = Place.of(snapshot)
                yield {"table": poll.table, **snapshot_facts(snapshot)}, told


def _after(look: Look, told: Place | None) -> list[Snapshot]:
    """The snapshots after a place, oldest first; None: only the newest."""
    if told is None:
        return [look.latest] if look.latest else []
    found = list(look.after(told.snapshot_id, told.time_millis))
    if found and found[-1].snapshot_id > told.snapshot_id + 1:
        first, last = told.snapshot_id + 1, found[-1].snapshot_id - 1
        log.error(
            "%s: snapshots %s to %s expired before they were seen; their changes are in snapshot "
            "%s. Retain snapshots for longer than a triggerer may be down.",
            *(look.table.name, first, last, found[-1].snapshot_id),
        )
    return found[::-1]
