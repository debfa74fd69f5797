"""Why a commit is refused after others (rule 12 of docs/semantics.md). Driver only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from spark_jobs.contract.undone import undone_operations
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.spi.writes import Operation

READ_AGAIN: Final = "Run the statement again: it will read the table's new snapshot."
# What another commit has changed: the two questions of every commit.
CHANGED_FILES: Final = "files that the statement changes"
READ_ROWS: Final = "what the statement read"


def conflict(commit: object, what: str, where: str = "") -> CommitError:
    """The error for another commit that is in the way."""
    message = f"{commit} changed {what}{where} while it ran."
    return CommitError(ErrorCode.COMMIT_CONFLICT, message, READ_AGAIN)


def refuse_own_commit(snapshot_id: int, operation_id: str | None, operation: Operation) -> None:
    """Refuse to commit after a snapshot of ``operation``, or an ended one of its task.

    Raises:
        CommitError: COMMIT_CONFLICT: another driver has made the snapshot, for ``operation_id``.
    """
    if operation_id in operation.same_work:
        raise CommitError(
            ErrorCode.COMMIT_CONFLICT,
            f"Operation {operation_id} was committed as snapshot {snapshot_id} by another driver "
            "while this one ran.",
            "Run the statement again: it will find that commit.",
        )


def refuse_moved_mark(
    snapshot_id: int, properties: Mapping[str, str], operation: Operation
) -> None:
    """Refuse to commit after a snapshot that moves a mark of ``operation``, forth or back.

    Raises:
        CommitError: COMMIT_CONFLICT.
    """
    moved = operation.marks & properties.keys()
    if moved or (operation.marks and undone_operations(properties)):
        raise CommitError(
            ErrorCode.COMMIT_CONFLICT,
            f"Snapshot {snapshot_id} moved the mark of a source that the statement reads while it "
            "ran.",
            "Run the statement again: it will read what is new since that snapshot.",
        )


def expired(snapshot_id: int, place: object) -> CommitError:
    """The error for a snapshot of a table that is gone, and with it what was committed."""
    return CommitError(
        ErrorCode.COMMIT_HISTORY_EXPIRED,
        f"Snapshot {snapshot_id} of {place} has expired.",
        "Look at the table's rows.",
    )
