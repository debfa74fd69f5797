"""Tags, and rolling a table back to an earlier snapshot. Driver only.

Modelled on Paimon's ``RollbackHelper``, but it leaves the files of dropped snapshots to the removal
of orphan files, because a writer may be publishing on top of one of these snapshots right now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from spark_jobs.connectors.paimon.library import stored_snapshots
from spark_jobs.connectors.paimon.maintenance.branch_history import BranchHistory, Consumer
from spark_jobs.connectors.paimon.maintenance.removal_plan import Dropping, RemovalPlanner
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.connectors.shared.maintenance.refusals import (
    no_snapshot,
    no_tag,
    refuse_loss,
    tag_exists,
)
from spark_jobs.contract import codec
from spark_jobs.contract.durations import parse_duration
from spark_jobs.contract.maintenance import (
    CreateTagSpec,
    DeleteTagSpec,
    MaintenanceReport,
    RollbackSpec,
)
from spark_jobs.contract.properties import DAG_ID
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.formats.paimon.expiry import duration_option
from spark_jobs.formats.paimon.metadata_files import entry_path, hint_path
from spark_jobs.spi.alterations import ChangeNote
from spark_jobs.storage.files import read_file, replace_file
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
        text = stored_snapshots.snapshot_json(snapshot)
    else:
        text = stored_snapshots.tag_json(snapshot, retention, clock())
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
            tags = [n for n, tag in history.tags.items() if stored_snapshots.is_over(tag, now)]
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


@dataclass(frozen=True, slots=True)
class Rollback:
    """Makes ``target`` the latest snapshot; drops ``snapshots`` (newest first) and ``tags``."""

    history: BranchHistory
    target: Any
    snapshots: Sequence[int]
    tags: Sequence[str]

    @classmethod
    def to(cls, history: BranchHistory, spec: RollbackSpec) -> Rollback:
        """The rollback that ``spec`` asks for; its snapshot or tag must exist."""
        if spec.tag is not None:
            target = stored_snapshots.snapshot_of_tag(history.tags[spec.tag])
        else:
            target = history.snapshots[spec.snapshot_id or 0]
        return cls.onto(history, target)

    @classmethod
    def onto(cls, history: BranchHistory, target: Any) -> Rollback:
        """The rollback to a snapshot."""
        later = [each for each in history.snapshots if each > target.id]
        tags = [name for name, tag in history.tags.items() if tag.id > target.id]
        return cls(history, target, sorted(later, reverse=True), tags)

    def refuse_loss(self, name: TableName, dag_id: str, consumers: Sequence[Consumer]) -> None:
        """Refuse to drop what others committed or rely on, and any tags.

        Raises:
            CommitError: COMMITS_OF_OTHERS; names the commits with their owners, tags and consumers.
        """
        reasons = []
        for snapshot_id in self.snapshots:
            snapshot = self.history.snapshots[snapshot_id]
            maker = (snapshot.properties or {}).get(DAG_ID)
            if not maker or maker != dag_id:
                by = f"DAG {maker}" if maker else f"user {snapshot.commit_user}"
                reasons.append(f"snapshot {snapshot_id} ({snapshot.commit_kind}) of {by}")
        reasons += [f"tag {tag}" for tag in self.tags]
        reasons += [str(each) for each in consumers if each.last_used > self.target.id]
        refuse_loss(f"Rolling {name} back to snapshot {self.target.id}", reasons)

    def carry_out(self, storage: Warehouse) -> None:
        """Drop the snapshots, newest first, so that the latest one is complete at any moment.

        Raises:
            CommitError: COMMIT_CONFLICT: another writer committed in the meantime; the snapshots
                are there again.
        """
        path = self.history.snapshot_path(self.target.id)
        if self.target.id not in self.history.snapshots:
            storage.files.create(path, stored_snapshots.snapshot_json(self.target))
            earliest = hint_path(self.history.folder, "EARLIEST")
            replace_file(storage.filesystem, earliest, str(self.target.id).encode())
        ordered = [self.history.snapshot_path(each) for each in self.snapshots]
        storage.remover.remove_in_order(ordered)
        after = self.history.snapshot_path(max(self.snapshots, default=self.target.id) + 1)
        if storage.filesystem.get_file_info(after).is_file:
            self._restore(storage)
            raise CommitError(
                ErrorCode.COMMIT_CONFLICT,
                "Somebody else committed while the table was rolled back.",
                "Run it again: it will roll that commit back too, if it may.",
            )
        storage.remover.remove_in_order([self.history.tag_path(each) for each in self.tags])
        storage.files.write_hint(hint_path(self.history.folder, "LATEST"), str(self.target.id))

    def _restore(self, storage: Warehouse) -> None:
        """Make the dropped snapshots again, because a later one builds on them."""
        for snapshot_id in reversed(self.snapshots):
            text = stored_snapshots.snapshot_json(self.history.snapshots[snapshot_id])
            storage.files.create(self.history.snapshot_path(snapshot_id), text)

    def report(self) -> MaintenanceReport:
        """The report on what is dropped."""
        ids = [each for each in self.history.snapshots if each <= self.target.id]
        return MaintenanceReport(
            snapshots=len(self.snapshots),
            tags=len(self.tags),
            earliest_snapshot_id=min([*ids, self.target.id]),
            latest_snapshot_id=self.target.id,
        )

    def noted(self) -> dict[str, Any]:
        """What ``is_dropped`` needs to tell these snapshots and tags from later ones."""
        dropped = [self.history.snapshots[each] for each in self.snapshots]
        return {
            "snapshots": [stored_snapshots.snapshot_json(each) for each in dropped],
            "tags": {name: self.history.tags[name].id for name in self.tags},
            "report": codec.encode(self.report()),
        }


def is_dropped(history: BranchHistory, noted: Mapping[str, Any]) -> bool:
    """Whether a rollback that was ``noted`` is over, whatever others have committed since."""
    there = {stored_snapshots.snapshot_json(each) for each in history.snapshots.values()}
    tags = {name: tag.id for name, tag in history.tags.items()}
    return there.isdisjoint(noted["snapshots"]) and not (tags.items() & noted["tags"].items())
