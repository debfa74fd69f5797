"""Looking up the snapshot that an operation committed. Driver only."""

from __future__ import annotations

from typing import Any

from spark_jobs.connectors.iceberg.commit.gap import snapshots_since, summary_of
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable, ancestors
from spark_jobs.connectors.shared.commit.refusals import expired
from spark_jobs.contract.properties import OPERATION_ID
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.formats.iceberg.holds import Base
from spark_jobs.spi.tables import CommittedSnapshot


def find_commit(
    table: PinnedTable, operation_id: str, base: Base | None
) -> CommittedSnapshot | None:
    """The snapshot that the operation committed, searched for from the branch's head backwards.

    No try of the operation writes anything before it notes its ``base``.

    Raises:
        CommitError: COMMIT_HISTORY_EXPIRED: snapshots since the base have expired.
    """
    for each in ancestors(table):
        if _maker(each) == operation_id:
            return _committed(each)
        if base is not None and each.snapshot_id == base.snapshot_id:
            return None
    if base is not None and snapshots_since(table, base) is None:
        raise CommitError(
            ErrorCode.COMMIT_HISTORY_EXPIRED,
            f"The snapshots of {table.place} do not lead back to {base.snapshot_id}, on which "
            f"operation {operation_id} was built, so whether it was committed cannot be known.",
            "Look at the table's rows; clear the task to run the statement once more.",
        )
    return None


def find_commits(table: PinnedTable, operation_id: str) -> list[CommittedSnapshot]:
    """All snapshots of the operation that have not expired, oldest first."""
    found = [each for each in ancestors(table) if _maker(each) == operation_id]
    return [_committed(each) for each in reversed(found)]


def recall(table: PinnedTable, snapshot_id: int) -> CommittedSnapshot | None:
    """The snapshot of this id, if the branch's head leads to it.

    None: the branch was rolled back, or never had it.

    Raises:
        CommitError: COMMIT_HISTORY_EXPIRED: it may have expired.
    """
    oldest = None
    for each in ancestors(table):
        if each.snapshot_id == snapshot_id:
            return _committed(each)
        oldest = each
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
