"""Whether something that others committed meanwhile is in the way of a commit. Driver only."""

from __future__ import annotations

from typing import Any, Final

from spark_jobs.connectors.paimon import library
from spark_jobs.errors import CommitError, ErrorCode, InternalError, JobError

_RETRY: Final = "Run the statement again: it will read the table's new snapshot."

# What pypaimon's ConflictDetection says, all of it as RuntimeError; (text, means a conflict).
CONFLICT_TEXTS: Final = (
    "File deletion conflicts detected",
    "Overwrite conflict detected",
    "Total buckets of partition",
    "Fixed-bucket conflict check cannot find snapshot",
    "Postpone fixed-bucket",
    "Deletion vector index conflict detected",
    "HASH index conflict detected",
    "Row ID existence conflict",
    "Global index row ID existence conflict",
)


def refuse_changes_since(table: Any, base: Any | None, latest: Any | None) -> None:
    """Refuse to publish when files or vectors changed anywhere in the table after the base.

    Serializable isolation with the whole table as the region that the statement read.

    Raises:
        CommitError: COMMIT_CONFLICT, with the snapshot that is in the way.
    """
    if latest is None:
        return
    indexes = base.index_manifest if base else None
    for snapshot_id in range(base.id + 1 if base else 1, latest.id + 1):
        snapshot = library.find_snapshot(table, snapshot_id)
        if snapshot is None:
            raise CommitError(
                ErrorCode.COMMIT_CONFLICT,
                f"Snapshot {snapshot_id}, committed while the statement ran, has expired already: "
                "whether it is in conflict can not be known.",
                _RETRY,
            )
        if snapshot.index_manifest != indexes or library.changes_files(table, snapshot):
            raise CommitError(
                ErrorCode.COMMIT_CONFLICT,
                f"Snapshot {snapshot.id} ({snapshot.commit_kind} by {snapshot.commit_user}) "
                "changed the table while the statement ran.",
                _RETRY,
            )


def to_job_error(error: RuntimeError) -> JobError:
    """The error behind what pypaimon's commit raised before it tried to publish."""
    text = str(error)
    if any(each in text for each in CONFLICT_TEXTS):
        return CommitError(ErrorCode.COMMIT_CONFLICT, f"The table has changed: {text}", _RETRY)
    return InternalError(
        ErrorCode.STORAGE_UNAVAILABLE,
        f"The snapshot could not be prepared: {text}",
        "Nothing was published. Check the warehouse's storage, then run the statement again.",
    )
