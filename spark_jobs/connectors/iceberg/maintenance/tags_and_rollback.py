"""Tags, and rolling a branch back or moving it to any other snapshot. Driver only.

A tag keeps its snapshot from expiring; to delete one removes no file.

Modelled on ``rollbackTo`` and ``setCurrentSnapshot`` of Iceberg's ``ManageSnapshots``. The
snapshots that the branch leaves behind stay in the table until they expire, and so does what tags
name.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

from spark_jobs.connectors.iceberg.maintenance.noted_changes import (
    Move,
    NotedChanges,
    carried_out,
    history_of,
    told,
)
from spark_jobs.connectors.iceberg.maintenance.references import (
    MAX_REF_AGE,
    TAG,
    Reference,
    References,
    given,
    known_snapshot,
    retention_millis,
)
from spark_jobs.connectors.iceberg.table.commits import summary_of
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable, ancestors
from spark_jobs.connectors.shared.maintenance.refusals import no_tag, refuse_loss, tag_exists
from spark_jobs.contract.maintenance import (
    CreateTagSpec,
    DeleteTagSpec,
    ExpireSnapshotsSpec,
    MaintenanceReport,
    RollbackSpec,
    SetCurrentSnapshotSpec,
)
from spark_jobs.contract.properties import DAG_ID
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.formats.iceberg.expiry import Limits


def create_tag(changes: NotedChanges, spec: CreateTagSpec) -> MaintenanceReport:
    """Create a tag that names a snapshot.

    Raises:
        CatalogError: SNAPSHOT_NOT_FOUND; TAG_EXISTS, also for a branch of that name.
        CommitError: COMMIT_CONFLICT, COMMIT_OUTCOME_UNKNOWN.
        RequestError: REQUEST_INVALID: the retention is nothing.
    """
    table = changes.table()
    if (earlier := changes.done(table)) is not None:
        return earlier
    ref = table.metadata.refs.get(spec.tag)
    if ref is not None:
        kind = str(ref.snapshot_ref_type)
        if spec.if_not_exists and kind == TAG:
            return MaintenanceReport()
        raise tag_exists(changes.name, kind, spec.tag)
    snapshot_id = known_snapshot(table, changes.name, spec.snapshot_id)
    retention = {MAX_REF_AGE: retention_millis("retention", spec.retention)}
    tag = Reference(spec.tag, TAG, snapshot_id, given(retention))
    return changes.require(table, References([tag]), MaintenanceReport(snapshot_id=snapshot_id))


def delete_tag(
    changes: NotedChanges, spec: DeleteTagSpec, now: datetime, *, dry_run: bool
) -> MaintenanceReport:
    """Delete a tag, or all whose retention is over at ``now``, in one commit.

    Raises:
        CatalogError: TAG_NOT_FOUND.
        CommitError: COMMIT_CONFLICT, COMMIT_OUTCOME_UNKNOWN.
        NotSupportedError: a property of the table has an invalid value.
    """
    table = changes.table()
    if not dry_run and (earlier := changes.done(table)) is not None:
        return earlier
    known = tags_of(table)
    if spec.tag is None:
        limits = Limits.of(ExpireSnapshotsSpec(), table.metadata.properties, now)
        snapshots = {each.snapshot_id: each for each in table.metadata.snapshots}
        names = [name for name, tag in known.items() if limits.is_over(tag, snapshots)]
    elif spec.tag in known:
        names = [spec.tag]
    elif spec.if_exists:
        names = []
    else:
        raise no_tag(changes.name, spec.tag, known)
    report = MaintenanceReport(tags=len(names))
    if dry_run or not names:
        return report
    return changes.require(table, References([Reference(n, TAG, None) for n in names]), report)


def tags_of(table: PinnedTable) -> dict[str, Any]:
    """Pyiceberg's references of the table's tags, by name."""
    refs = sorted(table.metadata.refs.items())
    return {name: each for name, each in refs if str(each.snapshot_ref_type) == TAG}


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
