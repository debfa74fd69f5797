"""Looking up the snapshot that an operation committed. Driver only."""

from __future__ import annotations

from typing import Any

from spark_jobs.connectors.iceberg.commit.gap import snapshots_since
from spark_jobs.connectors.iceberg.table.commits import summary_of
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable, ancestors
from spark_jobs.connectors.shared.commit.refusals import expired
from spark_jobs.contract.properties import OPERATION_ID
from spark_jobs.contract.undone import Undone, counting
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.formats.iceberg.holds import Base
from spark_jobs.spi.tables import CommittedSnapshot


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
