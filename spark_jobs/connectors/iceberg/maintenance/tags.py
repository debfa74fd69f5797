"""Creating and deleting tags. Driver only.

A tag keeps its snapshot from expiring; to delete one removes no file.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spark_jobs.connectors.iceberg.maintenance.noted_changes import NotedChanges
from spark_jobs.connectors.iceberg.maintenance.references import (
    MAX_REF_AGE,
    TAG,
    Reference,
    References,
    given,
    known_snapshot,
    retention_millis,
)
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.connectors.shared.maintenance.refusals import no_tag, tag_exists
from spark_jobs.contract.maintenance import (
    CreateTagSpec,
    DeleteTagSpec,
    ExpireSnapshotsSpec,
    MaintenanceReport,
)
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
