"""The history of a branch: which snapshot an operation committed, and what others did.

Driver only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from spark_jobs.connectors.iceberg.commit.base_notes import base_of
from spark_jobs.connectors.iceberg.table.commits import OtherCommit, commit_of, summary_of
from spark_jobs.connectors.iceberg.table.metadata_errors import reading_metadata
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable, ancestors
from spark_jobs.connectors.shared.commit.refusals import READ_AGAIN, expired
from spark_jobs.contract.properties import OPERATION_ID
from spark_jobs.contract.undone import Undone, counting
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.formats.iceberg.holds import Base
from spark_jobs.spi.marks import HistoryEntry, TableHistory
from spark_jobs.spi.tables import CommittedSnapshot

# Version 1 has no numbers, and pyiceberg's expiry cuts parents off.
_FIRST_NUMBER = 1


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


def find_commit(
    table: PinnedTable, operation_id: str, base: Base | None
) -> CommittedSnapshot | None:
    """The snapshot that the operation committed, searched for from the branch's head backwards.

    One that was taken back since is none. No try of the operation writes anything before it notes
    its ``base``.

    Raises:
        CommitError: COMMIT_HISTORY_EXPIRED: snapshots since the base have expired.
    """
    undone = Undone()
    for snapshot in ancestors(table):
        if undone.counts(summary_of(snapshot)) and _maker(snapshot) == operation_id:
            return _committed(snapshot)
        if base is not None and _is_before(snapshot, base):
            return None
    if base is not None and snapshots_since(table, base) is None:
        raise CommitError(
            ErrorCode.COMMIT_HISTORY_EXPIRED,
            f"The snapshots of {table.place} do not lead back to {base.snapshot_id}, on which "
            f"operation {operation_id} was built, so whether it was committed cannot be known.",
            "Look at the table's rows; clear the task to run the statement once more.",
        )
    return None


def _is_before(snapshot: Any, base: Base) -> bool:
    """Whether no operation on ``base`` made a snapshot, or one that it builds on.

    It need not be the base itself: the branch may have been moved, or made anew, since then.
    Version 1 has no sequence numbers.
    """
    number = snapshot.sequence_number
    return snapshot.snapshot_id == base.snapshot_id or bool(
        number and number <= base.sequence_number
    )


def find_commits(table: PinnedTable, operation_id: str) -> list[CommittedSnapshot]:
    """All snapshots of the operation that count and have not expired, oldest first."""
    found = [e for e in counting(ancestors(table), summary_of) if _maker(e) == operation_id]
    return [_committed(each) for each in reversed(found)]


def recall(table: PinnedTable, snapshot_id: int) -> CommittedSnapshot | None:
    """The snapshot of this id, if the branch's head leads to it.

    None: the branch was rolled back, or never had it, or a later commit took it back.

    Raises:
        CommitError: COMMIT_HISTORY_EXPIRED: it may have expired.
    """
    oldest, undone = None, Undone()
    for snapshot in ancestors(table):
        counts = undone.counts(summary_of(snapshot))
        if snapshot.snapshot_id == snapshot_id:
            return _committed(snapshot) if counts else None
        oldest = snapshot
    is_whole = oldest is None or oldest.parent_snapshot_id is None
    if is_whole or table.metadata.snapshot_by_id(snapshot_id) is not None:
        return None
    raise expired(snapshot_id, table.place)


def _maker(snapshot: Any) -> str | None:
    found: str | None = summary_of(snapshot).get(OPERATION_ID)
    return found


def _committed(snapshot: Any) -> CommittedSnapshot:
    properties = {k: v for k, v in summary_of(snapshot).items() if k.startswith("merge.")}
    return CommittedSnapshot(snapshot.snapshot_id, properties)


def history(table: PinnedTable) -> TableHistory:
    """The history of a branch, from its pinned snapshot backwards."""
    own = {each.snapshot_id for each in ancestors(table)}
    left = frozenset(each.snapshot_id for each in table.metadata.snapshots) - own
    return TableHistory(f"{table.metadata.table_uuid}", _entries(table), left)


def _entries(table: PinnedTable) -> Iterator[HistoryEntry]:
    undone = Undone()
    for snapshot in ancestors(table):
        properties, number = summary_of(snapshot), int(snapshot.sequence_number or 0)
        is_first = snapshot.parent_snapshot_id is None and number == _FIRST_NUMBER
        counts = undone.counts(properties)
        yield HistoryEntry(snapshot.snapshot_id, number, properties, counts, is_first)
