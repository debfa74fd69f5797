"""The errors for a snapshot or a tag that a table does not have. Driver only."""

from __future__ import annotations

from spark_jobs.connectors.paimon.maintenance.branch_history import BranchHistory
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CatalogError, ErrorCode


def no_snapshot(name: TableName, snapshot_id: int | None) -> CatalogError:
    """The error for a snapshot that does not exist; None: the table has no snapshot at all."""
    what = "any snapshot" if snapshot_id is None else f"a snapshot {snapshot_id}"
    return CatalogError(
        ErrorCode.SNAPSHOT_NOT_FOUND,
        f"{name} does not have {what}; it may have expired.",
        "Look at the table's snapshots and tags.",
    )


def no_tag(name: TableName, tag: str, history: BranchHistory) -> CatalogError:
    """The error for a tag that does not exist."""
    known = ", ".join(sorted(history.tags)[:20]) or "none"
    return CatalogError(
        ErrorCode.TAG_NOT_FOUND, f"{name} has no tag {tag}.", f"Use one of its tags: {known}."
    )
