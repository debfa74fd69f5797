"""Rolling a branch back, or moving it to any other snapshot. Driver only.

Modelled on ``rollbackTo`` and ``setCurrentSnapshot`` of Iceberg's ``ManageSnapshots``. The
snapshots that the branch leaves behind stay in the table until they expire, and so does what tags
name.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from spark_jobs.connectors.iceberg.maintenance.moves import Move, carried_out, history_of, told
from spark_jobs.connectors.iceberg.maintenance.noted_changes import NotedChanges
from spark_jobs.connectors.iceberg.maintenance.references import known_snapshot
from spark_jobs.connectors.iceberg.maintenance.tags import tags_of
from spark_jobs.connectors.iceberg.table.commits import summary_of
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable, ancestors
from spark_jobs.connectors.shared.maintenance.refusals import no_tag, refuse_loss
from spark_jobs.contract.maintenance import (
    MaintenanceReport,
    RollbackSpec,
    SetCurrentSnapshotSpec,
)
from spark_jobs.contract.properties import DAG_ID
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CatalogError, ErrorCode


def roll_back(
    changes: NotedChanges, spec: RollbackSpec, *, dag_id: str, dry_run: bool
) -> MaintenanceReport:
    """Move the branch back; with ``force``, also behind what others commit meanwhile.

    Raises:
        CatalogError: SNAPSHOT_NOT_FOUND: also one that is not in the branch's history;
            TAG_NOT_FOUND.
        CommitError: COMMITS_OF_OTHERS, COMMIT_CONFLICT, COMMIT_OUTCOME_UNKNOWN.
    """
    return carried_out(changes, partial(_back, changes.name, spec, dag_id), dry_run=dry_run)


def set_current_snapshot(
    changes: NotedChanges, spec: SetCurrentSnapshotSpec, *, dag_id: str, dry_run: bool
) -> MaintenanceReport:
    """Move the branch to any snapshot of the table.

    Raises:
        CatalogError: SNAPSHOT_NOT_FOUND, TAG_NOT_FOUND.
        CommitError: COMMITS_OF_OTHERS, COMMIT_CONFLICT, COMMIT_OUTCOME_UNKNOWN.
    """
    return carried_out(changes, partial(_anywhere, changes.name, spec, dag_id), dry_run=dry_run)


def named_snapshot(
    name: TableName, table: PinnedTable, snapshot_id: int | None, tag: str | None
) -> int:
    """The snapshot of a tag, else the one of this id, else the head of the branch.

    Raises:
        CatalogError: SNAPSHOT_NOT_FOUND, TAG_NOT_FOUND.
    """
    if tag is None:
        return known_snapshot(table, name, snapshot_id)
    ref = tags_of(table).get(tag)
    if ref is None:
        raise no_tag(name, tag, tags_of(table))
    return int(ref.snapshot_id)


def _back(name: TableName, spec: RollbackSpec, dag_id: str, table: PinnedTable) -> Move:
    target = named_snapshot(name, table, spec.snapshot_id, spec.tag)
    later = list(ancestors(table))
    ids = [each.snapshot_id for each in later]
    if target not in ids:
        raise CatalogError(
            ErrorCode.SNAPSHOT_NOT_FOUND,
            f"{name}: snapshot {target} is not in the history of the branch {table.branch}.",
            "Roll back to a snapshot that the newest one of the branch comes from.",
        )
    dropped = later[: ids.index(target)]
    if not spec.force:
        refuse_loss(f"Rolling {name} back to snapshot {target}", _of_others(dropped, dag_id))
    return Move(target, dropped)


def _anywhere(
    name: TableName, spec: SetCurrentSnapshotSpec, dag_id: str, table: PinnedTable
) -> Move:
    target = named_snapshot(name, table, spec.snapshot_id, spec.tag)
    kept = {each.snapshot_id for each in history_of(table, target)}
    dropped = [each for each in ancestors(table) if each.snapshot_id not in kept]
    if not spec.force:
        refuse_loss(f"Setting {name} to snapshot {target}", _of_others(dropped, dag_id))
    return Move(target, dropped)


def _of_others(snapshots: Sequence[Any], dag_id: str) -> list[str]:
    makers = ((each, summary_of(each).get(DAG_ID)) for each in snapshots)
    return [told(each) for each, maker in makers if not maker or maker != dag_id]
