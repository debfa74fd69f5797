"""A table's tags and branches, and a change of one. Driver only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.connectors.shared.maintenance.refusals import no_snapshot
from spark_jobs.contract.durations import parse_duration
from spark_jobs.contract.request import TableName
from spark_jobs.errors import ErrorCode, RequestError
from spark_jobs.formats.iceberg.expiry import history

TAG: Final = "tag"
BRANCH: Final = "branch"
MAX_REF_AGE: Final = "max-ref-age-ms"
MAX_SNAPSHOT_AGE: Final = "max-snapshot-age-ms"
MIN_SNAPSHOTS: Final = "min-snapshots-to-keep"
RETENTION: Final = (MAX_REF_AGE, MAX_SNAPSHOT_AGE, MIN_SNAPSHOTS)


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

    def is_in(self, read: PinnedTable, now: PinnedTable) -> bool:
        """Whether the table has it so, or had it before others committed to the branch."""
        ref, before = now.metadata.refs.get(self.name), pointer(read, self.name)
        if ref is None or self.snapshot_id is None:
            return ref is None and self.snapshot_id is None
        if before is None:
            kind = str(ref.snapshot_ref_type)
            return (kind, int(ref.snapshot_id)) == (self.kind, self.snapshot_id)
        return has_moved(now, self.name, before, self.snapshot_id) is True

    def fits(self, read: PinnedTable, now: PinnedTable) -> bool:
        """Whether nobody else has changed the reference."""
        return pointer(now, self.name) == pointer(read, self.name)


@dataclass(frozen=True, slots=True)
class References:
    """Several references that change together, or not at all; a ``Change``."""

    each: Sequence[Reference]

    def __str__(self) -> str:
        return ", ".join(map(str, self.each))

    def updates(self, read: PinnedTable) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """All of them must be what was read."""
        parts = [reference.updates(read) for reference in self.each]
        return (
            tuple(each for required, _ in parts for each in required),
            tuple(each for _, updates in parts for each in updates),
        )

    def is_in(self, read: PinnedTable, now: PinnedTable) -> bool:
        """Whether the table has all of them so."""
        return all(reference.is_in(read, now) for reference in self.each)

    def fits(self, read: PinnedTable, now: PinnedTable) -> bool:
        """Whether nobody else has changed any of them."""
        return all(reference.fits(read, now) for reference in self.each)


def pointer(table: PinnedTable, name: str) -> int | None:
    """The snapshot that a tag or branch names; None if there is none of this name."""
    found = table.metadata.refs.get(name)
    return None if found is None else int(found.snapshot_id)


def has_moved(now: PinnedTable, name: str, before: int | None, after: int) -> bool | None:
    """Whether a branch has been at ``after`` since it was at ``before``; None: it is elsewhere."""
    known = {each.snapshot_id: each for each in now.metadata.snapshots}
    for snapshot in history(known, pointer(now, name)):
        # Commits of others come after the newer of the two that the branch has been at.
        if snapshot.snapshot_id in (after, before):
            return after == int(snapshot.snapshot_id)
    return None


def known_snapshot(table: PinnedTable, name: TableName, snapshot_id: int | None) -> int:
    """The id, which the table must know; None: the head of the branch.

    Raises:
        CatalogError: SNAPSHOT_NOT_FOUND.
    """
    wanted_id = snapshot_id
    if wanted_id is None and table.snapshot is not None:
        wanted_id = int(table.snapshot.snapshot_id)
    if wanted_id is None or table.metadata.snapshot_by_id(wanted_id) is None:
        raise no_snapshot(name, snapshot_id)
    return wanted_id


def retention_millis(parameter: str, text: str | None) -> int | None:
    """A duration in milliseconds; None stays None.

    Raises:
        RequestError: REQUEST_INVALID: it is zero, with which Iceberg cannot read the table.
    """
    if text is None:
        return None
    millis = parse_duration(text) // timedelta(milliseconds=1)
    if millis > 0:
        return millis
    raise RequestError(
        ErrorCode.REQUEST_INVALID,
        f"{parameter}: {text!r} is no time at all, which Iceberg does not allow.",
        "Give a longer one, or leave it out.",
    )


def retention_of(reference: Any) -> dict[str, int]:
    """The retention that pyiceberg's reference has; of none, nothing."""
    return given({name: getattr(reference, name.replace("-", "_"), None) for name in RETENTION})


def given(retention: Mapping[str, int | None]) -> dict[str, int]:
    """Those that are set."""
    return {name: value for name, value in retention.items() if value is not None}


def unchanged(name: str, snapshot_id: int | None) -> Any:
    """Pyiceberg's requirement that a reference names this snapshot; None: there is none."""
    from pyiceberg.table.update import AssertRefSnapshotId

    condition: dict[str, Any] = {"ref": name, "snapshot-id": snapshot_id}
    return AssertRefSnapshotId(**condition)
