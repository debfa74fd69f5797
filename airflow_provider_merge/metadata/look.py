"""One look at a table: what several gates ask for is read once, and what never changes is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from airflow_provider_merge.metadata.paimon import Snapshot
from airflow_provider_merge.metadata.partitions import PartitionFacts
from airflow_provider_merge.metadata.schema import TableSchema
from airflow_provider_merge.metadata.table import PaimonTable, Tag

T = TypeVar("T")
_MOST_KEPT: Final = 2000


class _ReadOnce(Generic[T]):
    """A cached property without the lock that ``functools`` has in Python 3.11.

    All instances share that lock: a store that hangs would hold up the looks at all tables.
    """

    def __init__(self, read: Callable[[Any], T]) -> None:
        self._read = read

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, look: Any, owner: type | None = None) -> T:
        # From now on the attribute of the same name is found first.
        value = look.__dict__[self._name] = self._read(look)
        return value


@dataclass
class Memory:
    """What was read in earlier looks at the same table.

    Snapshots never change, but after a rollback other ones get their numbers: then nothing is kept.
    """

    latest: Snapshot | None = None
    snapshots: dict[int, Snapshot] = field(default_factory=dict)
    touched: dict[int, list[Mapping[str, str | None]]] = field(default_factory=dict)

    def forget(self) -> None:
        """Start anew."""
        self.snapshots.clear()
        self.touched.clear()


class Look:
    """The table as it is now. Everything raises what ``PaimonTable`` raises."""

    def __init__(self, table: PaimonTable, memory: Memory | None = None) -> None:
        self.table = table
        self._memory = memory or Memory()
        self._partitions: dict[tuple[Any, ...], list[PartitionFacts]] = {}

    @_ReadOnce
    def latest(self) -> Snapshot | None:
        """The newest snapshot."""
        latest, memory = self.table.latest(), self._memory
        known = memory.latest
        if known is not None and known != latest:
            gone_back = latest is None or latest.snapshot_id <= known.snapshot_id
            if gone_back or self.table.snapshots.snapshot(known.snapshot_id) != known:
                memory.forget()
        if len(memory.snapshots) > _MOST_KEPT:
            memory.forget()
        memory.latest = latest
        return latest

    @_ReadOnce
    def ids(self) -> list[int]:
        """The ids of all retained snapshots, ascending."""
        newest = self.latest
        return [
            each for each in self.table.snapshots.ids() if newest and each <= newest.snapshot_id
        ]

    @_ReadOnce
    def tags(self) -> list[str]:
        """The names of all tags."""
        return self.table.tags()

    @_ReadOnce
    def schema(self) -> TableSchema:
        """The newest schema."""
        return self.table.schema()

    def tag(self, name: str) -> Tag | None:
        """The tag of this name."""
        return self.table.tag(name)

    def newest_first(self) -> Iterator[Snapshot]:
        """The retained snapshots; one that expires meanwhile is left out."""
        if self.latest is None:
            return
        yield self.latest
        for snapshot_id in reversed(self.ids):
            if snapshot_id == self.latest.snapshot_id:
                continue
            found = self._snapshot(snapshot_id)
            if found is not None:
                yield found

    def after(self, snapshot_id: int, time_millis: int) -> Iterator[Snapshot]:
        """The retained snapshots after one that was seen before, newest first; id 0: all.

        Where the table was rolled back behind it or made anew, only its time tells what is new.
        """
        here = self.table.snapshots.snapshot(snapshot_id) if snapshot_id else None
        newest = self.latest.snapshot_id if self.latest else 0
        is_gone = newest < snapshot_id or (here is not None and here.time_millis != time_millis)
        for snapshot in self.newest_first():
            if is_gone and snapshot.time_millis <= time_millis:
                return
            if not is_gone and snapshot.snapshot_id <= snapshot_id:
                return
            yield snapshot

    @property
    def oldest(self) -> Snapshot | None:
        """The oldest snapshot that is retained."""
        return next(filter(None, map(self._snapshot, self.ids)), None)

    def expired(self) -> list[Snapshot]:
        """The snapshots that expired after a look read what they touched, newest first."""
        known = self._memory
        gone = known.touched.keys() - {*self.ids, self.latest and self.latest.snapshot_id}
        return [known.snapshots[each] for each in sorted(gone, reverse=True)]

    def _snapshot(self, snapshot_id: int) -> Snapshot | None:
        known = self._memory.snapshots
        found = known.get(snapshot_id) or self.table.snapshots.snapshot(snapshot_id)
        if found is not None:
            known[snapshot_id] = found
        return found

    def touched(self, snapshot: Snapshot) -> list[Mapping[str, str | None]]:
        """The partitions in which a snapshot changed rows."""
        known = self._memory.touched
        if snapshot.snapshot_id not in known:
            known[snapshot.snapshot_id] = self.table.touched(snapshot)
            self._memory.snapshots[snapshot.snapshot_id] = snapshot
        return known[snapshot.snapshot_id]

    def partitions(self, wanted: Mapping[str, Any]) -> list[PartitionFacts]:
        """The partitions of the newest snapshot that have these values."""
        key = tuple(sorted((name, repr(value)) for name, value in wanted.items()))
        if key not in self._partitions:
            # Of the very snapshot that the look tells of, not of one that came meanwhile.
            self._partitions[key] = self.table.partitions(wanted, self.latest)
        return self._partitions[key]
