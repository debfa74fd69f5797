"""Creating and deleting tags. Driver only.

A tag keeps its snapshot from expiring; to delete one removes no file.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from spark_jobs.connectors.iceberg.maintenance.metadata_commits import MetadataCommits
from spark_jobs.connectors.iceberg.maintenance.references import Reference
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.connectors.shared.maintenance.refusals import no_snapshot, no_tag, tag_exists
from spark_jobs.contract.durations import parse_duration
from spark_jobs.contract.maintenance import (
    CreateTagSpec,
    DeleteTagSpec,
    ExpireSnapshotsSpec,
    MaintenanceReport,
)
from spark_jobs.formats.iceberg.expiry import Limits

TAG: Final = "tag"
_AGE: Final = "max-ref-age-ms"


def create_tag(commits: MetadataCommits, spec: CreateTagSpec) -> MaintenanceReport:
    """Create a tag that names a snapshot.

    Raises:
        CatalogError: SNAPSHOT_NOT_FOUND; TAG_EXISTS, also for a branch of that name.
        CommitError: COMMIT_CONFLICT, COMMIT_OUTCOME_UNKNOWN.
    """
    table = commits.table()
    found = table.metadata.refs.get(spec.tag)
    if found is not None:
        kind = str(found.snapshot_ref_type)
        if spec.if_not_exists and kind == TAG:
            return MaintenanceReport()
        raise tag_exists(commits.name, kind, spec.tag)
    snapshot_id = table.snapshot.snapshot_id if table.snapshot else None
    if spec.snapshot_id is not None:
        snapshot_id = spec.snapshot_id
    if snapshot_id is None or table.metadata.snapshot_by_id(snapshot_id) is None:
        raise no_snapshot(commits.name, spec.snapshot_id)
    retention = {}
    if spec.retention is not None:
        retention[_AGE] = parse_duration(spec.retention) // timedelta(milliseconds=1)
    commits.require(table, Reference(spec.tag, TAG, snapshot_id, retention))
    return MaintenanceReport(snapshot_id=snapshot_id)


def delete_tag(
    commits: MetadataCommits, spec: DeleteTagSpec, now: datetime, *, dry_run: bool
) -> MaintenanceReport:
    """Delete a tag, or all whose retention is over at ``now``, each in a commit of its own.

    Raises:
        CatalogError: TAG_NOT_FOUND.
        CommitError: COMMIT_CONFLICT, COMMIT_OUTCOME_UNKNOWN.
        NotSupportedError: a property of the table has an invalid value.
    """
    table = commits.table()
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
        raise no_tag(commits.name, spec.tag, known)
    if not dry_run:
        for name in names:
            commits.require(commits.table(), Reference(name, TAG, None))
    return MaintenanceReport(tags=len(names))


def tags_of(table: PinnedTable) -> dict[str, Any]:
    """Pyiceberg's references of the table's tags, by name."""
    refs = sorted(table.metadata.refs.items())
    return {name: each for name, each in refs if str(each.snapshot_ref_type) == TAG}
