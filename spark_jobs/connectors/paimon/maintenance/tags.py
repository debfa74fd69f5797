"""Creating tags, and deleting them with the files that only they keep. Driver only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final

from spark_jobs.connectors.paimon.library import snapshot_files, stored_snapshots
from spark_jobs.connectors.paimon.maintenance.branch_history import BranchHistory
from spark_jobs.connectors.paimon.maintenance.removal_plan import Dropping, RemovalPlanner
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.connectors.shared.maintenance.refusals import no_snapshot, no_tag, tag_exists
from spark_jobs.contract import codec
from spark_jobs.contract.durations import parse_duration
from spark_jobs.contract.maintenance import CreateTagSpec, DeleteTagSpec, MaintenanceReport
from spark_jobs.contract.request import TableName
from spark_jobs.formats.paimon.expiry import duration_option
from spark_jobs.formats.paimon.metadata_files import entry_path
from spark_jobs.spi.alterations import ChangeNote
from spark_jobs.storage.files import read_file
from spark_jobs.storage.warehouse import Warehouse

TAG_RETAINED: Final = "tag.default-time-retained"


def create_tag(
    name: TableName,
    table: PinnedTable,
    storage: Warehouse,
    spec: CreateTagSpec,
    clock: Callable[[], datetime],
    note: ChangeNote,
) -> MaintenanceReport:
    """Create a tag that names a snapshot; the tag's file is written atomically.

    ``clock`` tells the time of the table's store, from which on a retention counts. A file like the
    one that an earlier try has noted is that try's.

    Raises:
        CatalogError: SNAPSHOT_NOT_FOUND; TAG_EXISTS.
    """
    path = entry_path(table.branch_path, "tag", spec.tag)
    noted = note.read()
    if noted is not None and noted["text"] == _stored_text(storage, path):
        return MaintenanceReport(snapshot_id=noted["snapshot_id"])
    snapshot = table.snapshot
    if spec.snapshot_id is not None:
        snapshot = stored_snapshots.find_snapshot(table.table, spec.snapshot_id)
    if snapshot is None:
        raise no_snapshot(name, spec.snapshot_id)
    retention = retention_of(spec, table.options)
    if retention is None:
        text = snapshot_files.snapshot_json(snapshot)
    else:
        text = snapshot_files.tag_json(snapshot, retention, clock())
    note.write({"text": text, "snapshot_id": snapshot.id})
    if not storage.files.create(path, text):
        note.remove()
        if spec.if_not_exists:
            return MaintenanceReport()
        raise tag_exists(name, "tag", spec.tag)
    # An expiry checks the tags again after it has removed the snapshot's file.
    if stored_snapshots.find_snapshot(table.table, snapshot.id) is None:
        storage.remover.remove([path])
        note.remove()
        raise no_snapshot(name, snapshot.id)
    return MaintenanceReport(snapshot_id=snapshot.id)


def delete_tag(
    name: TableName,
    table: PinnedTable,
    storage: Warehouse,
    spec: DeleteTagSpec,
    now: datetime,
    *,
    dry_run: bool,
    note: ChangeNote,
) -> MaintenanceReport:
    """Delete tags, and the files that only they keep; ``now`` is the time of the table's store.

    Raises:
        CatalogError: TAG_NOT_FOUND; METADATA_UNREADABLE: some metadata of files in use cannot be
            read.
    """

    def choose(history: BranchHistory) -> Dropping:
        if spec.tag is None:
            tags = [n for n, tag in history.tags.items() if snapshot_files.is_over(tag, now)]
        else:
            tags = [spec.tag] if spec.tag in history.tags else []
        return Dropping(tags=frozenset(tags))

    planner = RemovalPlanner(table, storage, now)
    if not dry_run and (earlier := _deleted(planner, note)) is not None:
        return earlier
    plan = planner.plan(choose)
    if spec.tag is not None and not plan.dropping.tags and not spec.if_exists:
        raise no_tag(name, spec.tag, plan.history.tags)
    report = planner.report([plan])
    if dry_run:
        return report
    if plan.dropping.tags:
        tags = {tag: plan.history.tags[tag].id for tag in plan.dropping.tags}
        note.write({"tags": tags, "report": codec.encode(report)})
    return planner.report([planner.carry_out(plan)])


def _deleted(planner: RemovalPlanner, note: ChangeNote) -> MaintenanceReport | None:
    """What an earlier try has deleted, and its leftovers now; None: its tags are there."""
    noted = note.read()
    if noted is None:
        return None
    tags = {name: tag.id for name, tag in planner.history().tags.items()}
    if tags.items() & noted["tags"].items():
        return None
    planner.carry_out(planner.plan(lambda _: Dropping()))
    return codec.decode(MaintenanceReport, noted["report"])


def retention_of(spec: CreateTagSpec, options: Mapping[str, str]) -> timedelta | None:
    """The retention of a new tag: the statement's, else the table's; None if neither sets one."""
    if spec.retention is not None:
        return parse_duration(spec.retention)
    text = options.get(TAG_RETAINED)
    return None if text is None else duration_option(TAG_RETAINED, text)


def _stored_text(storage: Warehouse, path: str) -> str | None:
    try:
        return read_file(storage.filesystem, path).decode(errors="replace")
    except FileNotFoundError:
        return None
