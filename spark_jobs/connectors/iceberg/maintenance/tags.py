"""Creating and deleting tags. Driver only.

A tag keeps its snapshot from expiring; to delete one removes no file. When a tag's retention is
over is what Java's ``RemoveSnapshots`` decides: its snapshot is older than the tag's own
``max-ref-age-ms``, else than the table's ``history.expire.max-ref-age-ms``.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from spark_jobs.connectors.iceberg.maintenance.references import Reference, References
from spark_jobs.connectors.iceberg.table.metadata_errors import reading_metadata
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.contract.durations import parse_duration
from spark_jobs.contract.maintenance import CreateTagSpec, DeleteTagSpec, MaintenanceReport
from spark_jobs.errors import CatalogError, ErrorCode

TAG: Final = "tag"
MAX_REF_AGE: Final = "history.expire.max-ref-age-ms"
_AGE: Final = "max-ref-age-ms"
_NAMED: Final = 20


def create_tag(references: References, spec: CreateTagSpec) -> MaintenanceReport:
    """Create a tag that names a snapshot.

    Raises:
        CatalogError: SNAPSHOT_NOT_FOUND; TAG_EXISTS, also for a branch of that name.
        CommitError: COMMIT_CONFLICT, COMMIT_OUTCOME_UNKNOWN.
    """
    table = references.table()
    found = table.metadata.refs.get(spec.tag)
    if found is not None:
        kind = str(found.snapshot_ref_type)
        if spec.if_not_exists and kind == TAG:
            return MaintenanceReport()
        raise CatalogError(
            ErrorCode.TAG_EXISTS,
            f"{references.name} has a {kind} {spec.tag} already.",
            "Choose another name, delete the tag first, or set if_not_exists.",
        )
    snapshot_id = table.snapshot.snapshot_id if table.snapshot else None
    if spec.snapshot_id is not None:
        snapshot_id = spec.snapshot_id
    if snapshot_id is None or table.metadata.snapshot_by_id(snapshot_id) is None:
        raise no_snapshot(references, spec.snapshot_id)
    retention = {}
    if spec.retention is not None:
        retention[_AGE] = parse_duration(spec.retention) // timedelta(milliseconds=1)
    references.require(table, Reference(spec.tag, TAG, snapshot_id, retention))
    return MaintenanceReport(snapshot_id=snapshot_id)


def delete_tag(
    references: References, spec: DeleteTagSpec, now: datetime, *, dry_run: bool
) -> MaintenanceReport:
    """Delete a tag, or all whose retention is over at ``now``, each in a commit of its own.

    Raises:
        CatalogError: TAG_NOT_FOUND.
        CommitError: COMMIT_CONFLICT, COMMIT_OUTCOME_UNKNOWN.
    """
    table = references.table()
    known = tags_of(table)
    if spec.tag is None:
        names = [name for name, tag in known.items() if _is_over(table, tag, now)]
    elif spec.tag in known:
        names = [spec.tag]
    elif spec.if_exists:
        names = []
    else:
        raise no_tag(references, spec.tag, table)
    if not dry_run:
        for name in names:
            references.require(references.table(), Reference(name, TAG, None))
    return MaintenanceReport(tags=len(names))


def tags_of(table: PinnedTable) -> dict[str, Any]:
    """Pyiceberg's references of the table's tags, by name."""
    refs = sorted(table.metadata.refs.items())
    return {name: each for name, each in refs if str(each.snapshot_ref_type) == TAG}


def no_snapshot(references: References, snapshot_id: int | None) -> CatalogError:
    """The error for a snapshot that does not exist; None: the branch has no snapshot at all."""
    what = "any snapshot" if snapshot_id is None else f"a snapshot {snapshot_id}"
    return CatalogError(
        ErrorCode.SNAPSHOT_NOT_FOUND,
        f"{references.name} does not have {what}; it may have expired.",
        "Look at the table's snapshots and tags.",
    )


def no_tag(references: References, tag: str, table: PinnedTable) -> CatalogError:
    """The error for a tag that does not exist."""
    known = ", ".join(list(tags_of(table))[:_NAMED]) or "none"
    return CatalogError(
        ErrorCode.TAG_NOT_FOUND,
        f"{references.name} has no tag {tag}.",
        f"Use one of its tags: {known}.",
    )


def _is_over(table: PinnedTable, tag: Any, now: datetime) -> bool:
    """Whether the retention of a tag is over; a tag whose snapshot is gone stays."""
    with reading_metadata(table.place):
        text = table.metadata.properties.get(MAX_REF_AGE)
        longest = tag.max_ref_age_ms if text is None else tag.max_ref_age_ms or int(text)
        snapshot = table.metadata.snapshot_by_id(tag.snapshot_id)
        if longest is None or snapshot is None:
            return False
        return bool(now.timestamp() * 1000 - snapshot.timestamp_ms > longest)
