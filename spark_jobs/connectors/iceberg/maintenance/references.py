"""Changes of a table's tags and branches, each as one commit that nobody else's can slip under.

The catalog is asked for a change of references alone, under the condition that the reference is
what was read: so nothing is replaced silently, as pyiceberg's own ``manage_snapshots`` does. Driver
only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from spark_jobs.connectors.iceberg.library.catalogs import IcebergCatalog
from spark_jobs.connectors.iceberg.metadata import IcebergMetadata
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable, pinned_table
from spark_jobs.connectors.shared.commit.commit_loop import store_once
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CommitError, ErrorCode, JobError


@dataclass(frozen=True, slots=True)
class Reference:
    """Where a tag or branch is to be, with its retention as Iceberg's JSON names it.

    ``snapshot_id`` None: the reference is to be gone.
    """

    name: str
    kind: str
    snapshot_id: int | None
    retention: Mapping[str, int] = field(default_factory=dict)

    def is_in(self, table: PinnedTable) -> bool:
        """Whether the table has it so."""
        found = table.metadata.refs.get(self.name)
        if found is None or self.snapshot_id is None:
            return found is None and self.snapshot_id is None
        return (str(found.snapshot_ref_type), found.snapshot_id) == (self.kind, self.snapshot_id)


@dataclass(frozen=True, slots=True)
class References:
    """The references of the table ``name``."""

    catalog: IcebergCatalog
    metadata: IcebergMetadata
    name: TableName

    def table(self) -> PinnedTable:
        """The table as it is now; raises as ``load_table`` does."""
        return pinned_table(self.metadata.load_table(self.name))

    def change(self, read: PinnedTable, wanted: Reference) -> bool:
        """Change a reference of the table that was ``read``; False: others changed it meanwhile.

        Raises:
            CommitError: COMMIT_OUTCOME_UNKNOWN.
            InternalError: STORAGE_UNAVAILABLE: it is certainly not changed.
        """
        return store_once(
            f"{wanted.kind} {wanted.name}",
            partial(self._store, read, wanted),
            partial(self._look_up, read, wanted),
        )

    def require(self, read: PinnedTable, wanted: Reference) -> None:
        """Change a reference, once.

        Raises:
            CommitError: COMMIT_CONFLICT: others changed it meanwhile; and as ``change``.
            InternalError: as ``change``.
        """
        if not self.change(read, wanted):
            raise CommitError(
                ErrorCode.COMMIT_CONFLICT,
                f"{self.name}: somebody else changed the {wanted.kind} {wanted.name} meanwhile.",
                "Look at the table's tags and snapshots, and run it again.",
            )

    def _store(self, read: PinnedTable, wanted: Reference) -> bool:
        answer = self.catalog.committed(read.table, *_changes(read, wanted))
        if answer == "unknown":
            raise TimeoutError("the catalog's answer does not tell what it did")
        if answer == "no":
            raise OSError("the catalog refused")
        if answer == "yes":
            return True
        # A request may arrive twice: then the refusal is of the second one.
        try:
            return wanted.is_in(self.table())
        except JobError as error:
            raise TimeoutError("the catalog refused, and did not show the table") from error

    def _look_up(self, read: PinnedTable, wanted: Reference) -> bool | None:
        """Whether the table has the reference as wanted; None: not, but it may still get it."""
        now = self.table()
        if wanted.is_in(now):
            return True
        return None if _pointer(now, wanted.name) == _pointer(read, wanted.name) else False


def _pointer(table: PinnedTable, name: str) -> int | None:
    found = table.metadata.refs.get(name)
    return None if found is None else int(found.snapshot_id)


def _changes(read: PinnedTable, wanted: Reference) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """What the catalog is to require and to change."""
    from pyiceberg.table import update

    condition: dict[str, Any] = {
        "ref": wanted.name,
        "snapshot-id": _pointer(read, wanted.name),
    }
    required = (
        update.AssertTableUUID(uuid=read.metadata.table_uuid),
        update.AssertRefSnapshotId(**condition),
    )
    if wanted.snapshot_id is None:
        gone: dict[str, Any] = {"ref-name": wanted.name}
        return required, (update.RemoveSnapshotRefUpdate(**gone),)
    moved: dict[str, Any] = {
        "ref-name": wanted.name,
        "type": wanted.kind,
        "snapshot-id": wanted.snapshot_id,
        **wanted.retention,
    }
    return required, (update.SetSnapshotRefUpdate(**moved),)
