"""Rolling a branch back to an earlier snapshot of its history. Driver only.

Modelled on Iceberg's ``ManageSnapshots.rollbackTo``. The snapshots after it stay in the table until
they expire, and so does what tags name.
"""

from __future__ import annotations

from typing import Any, Final

from spark_jobs.connectors.iceberg.commit.gap import ancestors, summary_of
from spark_jobs.connectors.iceberg.maintenance.noted_changes import NotedChanges
from spark_jobs.connectors.iceberg.maintenance.references import (
    BRANCH,
    RETENTION,
    Reference,
    References,
    given,
)
from spark_jobs.connectors.iceberg.maintenance.tags import tags_of
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.connectors.shared.maintenance.refusals import no_snapshot, no_tag, refuse_loss
from spark_jobs.contract.maintenance import MaintenanceReport, RollbackSpec
from spark_jobs.contract.properties import DAG_ID
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CatalogError, CommitError, ErrorCode

# How often a rollback begins again when others commit all the time.
_ROLLBACKS: Final = 10


def roll_back(
    changes: NotedChanges, spec: RollbackSpec, *, dag_id: str, dry_run: bool
) -> MaintenanceReport:
    """Move the branch back; with ``force``, also behind what others commit meanwhile.

    Raises:
        CatalogError: SNAPSHOT_NOT_FOUND: also one that is not in the branch's history;
            TAG_NOT_FOUND.
        CommitError: COMMITS_OF_OTHERS, COMMIT_CONFLICT, COMMIT_OUTCOME_UNKNOWN.
    """
    for _ in range(_ROLLBACKS):
        table = changes.table()
        if not dry_run and (earlier := changes.done(table)) is not None:
            return earlier
        target = _target(changes.name, table, spec)
        history = list(ancestors(table))
        ids = [each.snapshot_id for each in history]
        if target not in ids:
            raise CatalogError(
                ErrorCode.SNAPSHOT_NOT_FOUND,
                f"{changes.name}: snapshot {target} is not in the history of the branch "
                f"{table.branch}.",
                "Roll back to a snapshot that the newest one of the branch comes from.",
            )
        dropped = history[: ids.index(target)]
        if not spec.force:
            _refuse_others(changes.name, target, dropped, dag_id)
        report = MaintenanceReport(
            snapshots=len(dropped), earliest_snapshot_id=ids[-1], latest_snapshot_id=target
        )
        moved = References([_moved(table, target)])
        if dry_run or not dropped or changes.change(table, moved, report):
            return report
    raise CommitError(
        ErrorCode.COMMIT_CONFLICT,
        f"Others committed to {changes.name} in each of {_ROLLBACKS} tries to roll it back.",
        "Run it again when fewer writers are at work on the table.",
    )


def _target(name: TableName, table: PinnedTable, spec: RollbackSpec) -> int:
    if spec.tag is not None:
        tag = tags_of(table).get(spec.tag)
        if tag is None:
            raise no_tag(name, spec.tag, tags_of(table))
        return int(tag.snapshot_id)
    if spec.snapshot_id is None or table.metadata.snapshot_by_id(spec.snapshot_id) is None:
        raise no_snapshot(name, spec.snapshot_id)
    return spec.snapshot_id


def _refuse_others(name: TableName, target: int, dropped: list[Any], dag_id: str) -> None:
    """Refuse to drop what others committed.

    Raises:
        CommitError: COMMITS_OF_OTHERS; names the commits with their owners.
    """
    losses = []
    for snapshot in dropped:
        summary = summary_of(snapshot)
        maker = summary.get(DAG_ID)
        if not maker or maker != dag_id:
            by = f"DAG {maker}" if maker else "another writer"
            losses.append(f"snapshot {snapshot.snapshot_id} ({summary.get('operation')}) of {by}")
    refuse_loss(name, target, losses)


def _moved(table: PinnedTable, target: int) -> Reference:
    """The branch at ``target``, with the retention that it has."""
    head = table.metadata.refs[table.branch]
    values = {name: getattr(head, name.replace("-", "_"), None) for name in RETENTION}
    return Reference(table.branch, BRANCH, target, given(values))
