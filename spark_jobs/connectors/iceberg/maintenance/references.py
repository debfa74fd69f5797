"""A table's tags and branches, and a change of one. Driver only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable


@dataclass(frozen=True, slots=True)
class Reference:
    """Where a tag or branch is to be, with its retention as Iceberg's JSON names it.

    A ``Change``. ``snapshot_id`` None: the reference is to be gone.
    """

    name: str
    kind: str
    snapshot_id: int | None
    retention: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    def updates(self, read: PinnedTable) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The reference must be what was read."""
        from pyiceberg.table import update

        required = (unchanged(self.name, pointer(read, self.name)),)
        if self.snapshot_id is None:
            gone: dict[str, Any] = {"ref-name": self.name}
            return required, (update.RemoveSnapshotRefUpdate(**gone),)
        moved: dict[str, Any] = {
            "ref-name": self.name,
            "type": self.kind,
            "snapshot-id": self.snapshot_id,
            **self.retention,
        }
        return required, (update.SetSnapshotRefUpdate(**moved),)

    def is_in(self, table: PinnedTable) -> bool:
        """Whether the table has it so."""
        found = table.metadata.refs.get(self.name)
        if found is None or self.snapshot_id is None:
            return found is None and self.snapshot_id is None
        return (str(found.snapshot_ref_type), found.snapshot_id) == (self.kind, self.snapshot_id)

    def fits(self, read: PinnedTable, now: PinnedTable) -> bool:
        """Whether nobody else has changed the reference."""
        return pointer(now, self.name) == pointer(read, self.name)


def pointer(table: PinnedTable, name: str) -> int | None:
    """The snapshot that a tag or branch names; None if there is none of this name."""
    found = table.metadata.refs.get(name)
    return None if found is None else int(found.snapshot_id)


def unchanged(name: str, snapshot_id: int | None) -> Any:
    """Pyiceberg's requirement that a reference names this snapshot; None: there is none."""
    from pyiceberg.table.update import AssertRefSnapshotId

    condition: dict[str, Any] = {"ref": name, "snapshot-id": snapshot_id}
    return AssertRefSnapshotId(**condition)
