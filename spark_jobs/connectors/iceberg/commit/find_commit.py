"""Looking up the snapshot that an operation committed. Driver only."""

from __future__ import annotations

from spark_jobs.connectors.iceberg.commit.base_notes import Base
from spark_jobs.connectors.iceberg.commit.gap import ancestors, snapshots_since, summary_of
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.contract.properties import OPERATION_ID
from spark_jobs.errors import CommitError, ErrorCode
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
        summary = summary_of(each)
        if summary.get(OPERATION_ID) == operation_id:
            properties = {k: v for k, v in summary.items() if k.startswith("merge.")}
            return CommittedSnapshot(each.snapshot_id, properties)
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
