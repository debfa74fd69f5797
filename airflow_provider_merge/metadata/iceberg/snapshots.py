"""Snapshots of an Iceberg table, from its metadata; the names are those of the specification."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from airflow_provider_merge.metadata.model import Snapshot

_REPLACE: Final = "replace"
_RECORDS: Final = "total-records"
_DIGITS: Final = 19


@dataclass(frozen=True, slots=True)
class IcebergSnapshot(Snapshot):
    """One snapshot; ``manifest_list`` is the location of a file."""

    manifest_list: str


@dataclass(frozen=True)
class Branch:
    """The snapshots of a branch, from pyiceberg's ``TableMetadata``."""

    metadata: Any
    name: str

    def exists(self) -> bool:
        """Whether the table has such a branch; the main one is always there."""
        return self.name == "main" or self._ref(self.name, "branch") is not None

    def latest(self) -> IcebergSnapshot | None:
        """The newest snapshot; None without one."""
        return next(self.newest_first(), None)

    def snapshot(self, snapshot_id: int) -> IcebergSnapshot | None:
        """The one with an id; None: it is not in the history of the branch."""
        return self._own.get(snapshot_id)

    def newest_first(self) -> Iterator[IcebergSnapshot]:
        """The retained snapshots."""
        return iter(self._own.values())

    def history(self, newest: IcebergSnapshot | None) -> IcebergHistory:
        """The retained snapshots up to ``newest``."""
        if newest is None:
            return IcebergHistory((), None, is_complete=True)
        ids = [each.snapshot_id for each in self._newest_first(newest.snapshot_id)][::-1]
        oldest = self._by_id[ids[0]]
        parent = oldest.parent_snapshot_id
        # pyiceberg cuts the parent when it expires it, but numbers tell where a table began.
        is_first = self.metadata.format_version == 1 or oldest.sequence_number == 1
        return IcebergHistory(tuple(ids), parent, is_complete=parent is None and is_first)

    def tags(self) -> list[str]:
        """The names of all tags of the table, sorted."""
        return self._names("tag")

    def others(self) -> list[str]:
        """The names of all branches of the table but the main one, sorted."""
        return [each for each in self._names("branch") if each != "main"]

    def tagged(self, name: str) -> IcebergSnapshot | None:
        """The snapshot of a tag; None: there is no such tag."""
        return next(self._newest_first(self._ref(name, "tag")), None)

    def _names(self, kind: str) -> list[str]:
        refs = self.metadata.refs.items()
        return sorted(name for name, ref in refs if str(ref.snapshot_ref_type) == kind)

    def _ref(self, name: str, kind: str) -> int | None:
        ref = self.metadata.refs.get(name)
        return ref.snapshot_id if ref and str(ref.snapshot_ref_type) == kind else None

    @cached_property
    def _own(self) -> dict[int, IcebergSnapshot]:
        """The branch's snapshots by id, the newest first."""
        head = self._ref(self.name, "branch")
        return {each.snapshot_id: each for each in self._newest_first(head)}

    def _newest_first(self, snapshot_id: int | None) -> Iterator[IcebergSnapshot]:
        met: set[int | None] = set()
        # Parents may be a circle.
        while snapshot_id in self._by_id and snapshot_id not in met:
            met.add(snapshot_id)
            snapshot = self._by_id[snapshot_id]
            yield self._converted(snapshot)
            snapshot_id = snapshot.parent_snapshot_id

    @cached_property
    def _by_id(self) -> dict[int | None, Any]:
        return {each.snapshot_id: each for each in self.metadata.snapshots}

    def _converted(self, found: Any) -> IcebergSnapshot:
        summary, schema_id = found.summary, found.schema_id
        kind = summary.operation.value if summary else "unknown"
        properties = dict(summary.additional_properties) if summary else {}
        records = properties.get(_RECORDS, "")
        return IcebergSnapshot(
            snapshot_id=found.snapshot_id,
            schema_id=self.metadata.current_schema_id if schema_id is None else schema_id,
            commit_kind=kind,
            keeps_rows=kind == _REPLACE,
            time_millis=found.timestamp_ms,
            total_record_count=int(records) if _is_number(records) else None,
            properties=properties,
            manifest_list=found.manifest_list,
        )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS


@dataclass(frozen=True, slots=True)
class IcebergHistory:
    """Snapshots from the oldest retained one to the newest; ids have no order.

    ``parent`` is that of the oldest, which has expired; None: there is none, or a writer that
    expired it cut the tie.
    """

    ids: tuple[int, ...]
    parent: int | None
    is_complete: bool

    def after(self, snapshot_id: int) -> Sequence[int] | None:
        """The ids behind one; None: it is not in this history, or expired long ago."""
        if snapshot_id in (0, self.parent):
            return self.ids
        if snapshot_id not in self.ids:
            return None
        return self.ids[self.ids.index(snapshot_id) + 1 :]

    def expired_after(self, snapshot_id: int) -> Sequence[int]:
        """None is known: a table forgets its expired snapshots."""
        return ()
