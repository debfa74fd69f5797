"""Moving a branch to another snapshot that the table has. Driver only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spark_jobs.connectors.iceberg.maintenance.noted_changes import NotedChanges
from spark_jobs.connectors.iceberg.maintenance.references import (
    BRANCH,
    Reference,
    References,
    pointer,
    retention_of,
)
from spark_jobs.connectors.iceberg.table.commits import summary_of
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.contract.maintenance import MaintenanceReport
from spark_jobs.contract.properties import DAG_ID
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.formats.iceberg.expiry import history

# How often a move begins again when others commit all the time.
_TRIES: Final = 10


@dataclass(frozen=True, slots=True)
class Move:
    """The branch goes to ``target``, and leaves ``dropped`` snapshots behind."""

    target: int
    dropped: Sequence[Any] = ()


def carried_out(
    changes: NotedChanges, plan: Callable[[PinnedTable], Move], *, dry_run: bool
) -> MaintenanceReport:
    """Move the branch as ``plan`` says of the table as it is now, in one commit.

    Raises:
        CommitError: COMMIT_CONFLICT, COMMIT_HISTORY_EXPIRED, COMMIT_OUTCOME_UNKNOWN.
        JobError: raised by ``plan``.
    """
    for _ in range(_TRIES):
        table = changes.table()
        if not dry_run and (earlier := changes.done(table)) is not None:
            return earlier
        move = plan(table)
        is_there = pointer(table, table.branch) == move.target
        report = MaintenanceReport(
            snapshots=len(move.dropped),
            earliest_snapshot_id=[each.snapshot_id for each in history_of(table, move.target)][-1],
            latest_snapshot_id=move.target,
            snapshot_id=None if is_there else move.target,
        )
        wanted = References([moved_branch(table, move.target)])
        if dry_run or is_there or changes.change(table, wanted, report):
            return report
    raise CommitError(
        ErrorCode.COMMIT_CONFLICT,
        f"Others committed to {changes.name} in each of {_TRIES} tries to move its branch.",
        "Run it again when fewer writers are at work on the table.",
    )


def history_of(table: PinnedTable, snapshot_id: int | None) -> Iterator[Any]:
    """The snapshot and those that it builds on, newest first."""
    return history({each.snapshot_id: each for each in table.metadata.snapshots}, snapshot_id)


def moved_branch(table: PinnedTable, target: int) -> Reference:
    """The branch at ``target``, with the retention that it has."""
    kept = retention_of(table.metadata.refs.get(table.branch))
    return Reference(table.branch, BRANCH, target, kept)


def told(snapshot: Any) -> str:
    """A snapshot with who made it, for errors."""
    summary = summary_of(snapshot)
    maker = summary.get(DAG_ID)
    by = f"DAG {maker}" if maker else "another writer"
    return f"snapshot {snapshot.snapshot_id} ({summary.get('operation')}) of {by}"
