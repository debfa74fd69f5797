"""Rolling a table back to an earlier snapshot. Driver only.

Modelled on Paimon's ``RollbackHelper``, but it leaves the files of dropped snapshots to the removal
of orphan files, because a writer may be publishing on top of one of these snapshots right now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spark_jobs.connectors.paimon.library import snapshot_files
from spark_jobs.connectors.paimon.maintenance.branch_history import BranchHistory, Consumer
from spark_jobs.connectors.shared.maintenance.refusals import refuse_loss
from spark_jobs.contract import codec
from spark_jobs.contract.maintenance import MaintenanceReport, RollbackSpec
from spark_jobs.contract.properties import DAG_ID
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.formats.paimon.metadata_files import hint_path
from spark_jobs.storage.files import replace_file
from spark_jobs.storage.warehouse import Warehouse


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
            target = snapshot_files.snapshot_of_tag(history.tags[spec.tag])
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
            storage.files.create(path, snapshot_files.snapshot_json(self.target))
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
            text = snapshot_files.snapshot_json(self.history.snapshots[snapshot_id])
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
            "snapshots": [snapshot_files.snapshot_json(each) for each in dropped],
            "tags": {name: self.history.tags[name].id for name in self.tags},
            "report": codec.encode(self.report()),
        }


def is_dropped(history: BranchHistory, noted: Mapping[str, Any]) -> bool:
    """Whether a rollback that was ``noted`` is over, whatever others have committed since."""
    there = {snapshot_files.snapshot_json(each) for each in history.snapshots.values()}
    tags = {name: tag.id for name, tag in history.tags.items()}
    return there.isdisjoint(noted["snapshots"]) and not (tags.items() & noted["tags"].items())
