"""The snapshots that others committed after the base of a write. Driver only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spark_jobs.connectors.iceberg.commit.base_notes import base_of
from spark_jobs.connectors.iceberg.table.commits import OtherCommit, commit_of
from spark_jobs.connectors.iceberg.table.metadata_errors import reading_metadata
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable, ancestors
from spark_jobs.connectors.shared.commit.refusals import READ_AGAIN
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.formats.iceberg.holds import Base


def snapshots_since(latest: PinnedTable, base: Base) -> list[Any] | None:
    """The snapshots after ``base`` up to the head of ``latest``, oldest first.

    None if they cannot be known: one has expired, or the table was rolled back.
    """
    snapshots: list[Any] = []
    for snapshot in ancestors(latest):
        if snapshot.snapshot_id == base.snapshot_id:
            return snapshots[::-1]
        snapshots.append(snapshot)
    if not snapshots:
        return [] if base.snapshot_id is None else None
    parent = snapshots[-1].parent_snapshot_id
    is_whole = parent == base.snapshot_id and (
        parent is not None or _is_first(latest, snapshots, base)
    )
    return snapshots[::-1] if is_whole else None


def _is_first(latest: PinnedTable, found: Sequence[Any], base: Base) -> bool:
    """Whether the oldest found snapshot has had no parent; pyiceberg's expiry cuts parents off.

    Then every number since the base is that of a snapshot. Version 1 has no numbers.
    """
    known = {each.sequence_number for each in latest.metadata.snapshots}
    numbers = range(base.sequence_number + 1, found[-1].sequence_number or 0)
    return all(number in known for number in numbers)


class Gap:
    """The commits after the base of a write that have been read so far."""

    def __init__(self, base: PinnedTable) -> None:
        self._base = base_of(base)
        self.commits: list[OtherCommit] = []

    def read_up_to(self, latest: PinnedTable) -> None:
        """Read the snapshots of ``latest`` that have not been read.

        Raises:
            CommitError: COMMIT_CONFLICT: one has expired, or the table was rolled back.
        """
        snapshots = snapshots_since(latest, self._base)
        known = [each.snapshot.snapshot_id for each in self.commits]
        if snapshots is None or [each.snapshot_id for each in snapshots[: len(known)]] != known:
            raise CommitError(
                ErrorCode.COMMIT_CONFLICT,
                f"The snapshots of {latest.place} since {self._base.snapshot_id}, on which the "
                "statement builds, have expired or were rolled back while it ran.",
                READ_AGAIN,
            )
        for snapshot in snapshots[len(known) :]:
            with reading_metadata(latest.place):
                self.commits.append(commit_of(latest, snapshot))
