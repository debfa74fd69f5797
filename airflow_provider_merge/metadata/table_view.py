"""One poll of a table: what several gates ask for is read once, and what never changes is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any, Generic, TypeVar

from airflow_provider_merge.metadata.model import (
    CompactionFacts,
    PartitionFacts,
    Snapshot,
    TableSchema,
    Tag,
)
from airflow_provider_merge.metadata.reader import History, PartitionFilter, TableReader
from airflow_provider_merge.metadata.snapshot_cache import SnapshotCache
from spark_jobs.contract.compaction import CompactSpec

T = TypeVar("T")


class _ReadOnce(Generic[T]):
    """A cached property without the lock that ``functools`` has in Python 3.11.

    All instances share that lock: a store that hangs would hold up the polls of all tables.
    """

    def __init__(self, read: Callable[[Any], T]) -> None:
        self._read = read

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, view: Any, owner: type | None = None) -> T:
        # From now on the attribute of the same name is found first.
        value = view.__dict__[self._name] = self._read(view)
        return value


class TableView:
    """The table as it is now. Everything raises what ``TableReader`` raises."""

    def __init__(
        self,
        table: TableReader,
        cache: SnapshotCache | None = None,
        others: Callable[[str | None, str], TableReader] | None = None,
    ) -> None:
        self.table = table
        self._cache = cache or SnapshotCache()
        self._others = others
        self._partitions: dict[tuple[Any, ...], list[PartitionFacts]] = {}

    @_ReadOnce
    def latest(self) -> Snapshot | None:
        """The newest snapshot."""
        latest, cache = self.table.latest(), self._cache
        known = cache.latest
        is_replaced = known not in (None, latest) and not self._is_retained(known)
        if cache.is_full or is_replaced:
            cache.clear()
        cache.latest = latest
        return latest

    @_ReadOnce
    def history(self) -> History:
        """The retained snapshots, up to ``latest``."""
        return self.table.history(self.latest)

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

    def other(self, connection: str | None, name: str) -> TableView:
        """Another table, of this catalog or of that of a connection."""
        assert self._others is not None  # noqa: S101 - who asks for others opened the view with them
        return TableView(self._others(connection, name))

    def partition_filter(self, values: Mapping[str, Any]) -> PartitionFilter:
        """The filter for values of partition columns of the newest schema."""
        return self.table.partition_filter(self.schema, values)

    def newest_first(self) -> Iterator[Snapshot]:
        """The retained snapshots; one that expires meanwhile is left out."""
        if self.latest is not None:
            yield self.latest
            yield from self._read(reversed(self.history.ids[:-1]))

    def after_id(self, snapshot_id: int) -> Iterator[Snapshot]:
        """The retained snapshots behind one, newest first; none if the history does not know it."""
        if self.latest is not None and self.latest.snapshot_id != snapshot_id:
            yield from self._read(reversed(self.history.after(snapshot_id) or ()))

    def after(self, snapshot_id: int, time_millis: int) -> Iterator[Snapshot]:
        """The retained snapshots behind one that was seen before, newest first; id 0: all.

        Where the table was rolled back behind it or made anew, only its time tells what is new.
        """
        latest = self.latest
        if latest is None or (latest.snapshot_id, latest.time_millis) == (snapshot_id, time_millis):
            return
        behind = self.history.after(snapshot_id)
        here = self.table.snapshot(snapshot_id) if behind is not None and snapshot_id else None
        if behind is None or (here is not None and here.time_millis != time_millis):
            yield from takewhile(lambda each: each.time_millis > time_millis, self.newest_first())
        else:
            yield from self._read(reversed(behind))

    def missed(self, snapshot_id: int, first: Snapshot) -> tuple[int, int] | None:
        """The oldest and newest id that expired behind one snapshot and before another was read.

        ``first`` is the oldest snapshot that was read; None: nothing is known to have expired.
        """
        gone = self.history.expired_after(snapshot_id)
        behind = self.history.after(snapshot_id) or ()
        until = behind.index(first.snapshot_id) if first.snapshot_id in behind else 0
        missed = [*gone[:1], *gone[-1:], *behind[:until]]
        return (missed[0], missed[-1]) if missed else None

    def lost(self, snapshot_id: int) -> bool:
        """Whether a snapshot may have expired, and others behind it, and nothing tells which."""
        return self.history.after(snapshot_id) is None and not self.history.is_complete

    @property
    def oldest(self) -> Snapshot | None:
        """The oldest snapshot that is retained."""
        return next(self._read(self.history.ids), None)

    def expired(self) -> list[Snapshot]:
        """The snapshots that expired after a poll read what they touched, newest first."""
        gone = self._cache.touched.keys() - set(self.history.ids)
        snapshots = [self._cache.snapshots[each] for each in gone]
        return sorted(snapshots, key=lambda each: each.time_millis, reverse=True)

    def touched(self, snapshot: Snapshot) -> list[Mapping[str, str | None]]:
        """The partitions in which a snapshot changed rows."""
        known = self._cache.touched
        if snapshot.snapshot_id not in known:
            known[snapshot.snapshot_id] = self.table.touched(snapshot)
            self._cache.snapshots[snapshot.snapshot_id] = snapshot
        return known[snapshot.snapshot_id]

    def partitions(self, wanted: Mapping[str, Any]) -> list[PartitionFacts]:
        """The partitions of the newest snapshot that have these values."""
        key = _question(wanted)
        if key not in self._partitions:
            # Of the very snapshot that the view tells of, not of one that came meanwhile.
            self._partitions[key] = self.table.partitions(wanted, self.latest)
        return self._partitions[key]

    def compaction_facts(
        self, spec: CompactSpec, wanted: Mapping[str, Any]
    ) -> list[CompactionFacts]:
        """What a compaction would find there; counted once for each snapshot and schema."""
        cache, now = self._cache, (self.latest, self.schema.schema_id)
        if cache.compaction_of != now:
            cache.compaction_of = now
            cache.compaction.clear()
        key = (repr(spec), _question(wanted))
        if key not in cache.compaction:
            cache.compaction[key] = self.table.compaction_facts(spec, wanted, self.latest)
        return cache.compaction[key]

    def _is_retained(self, known: Snapshot | None) -> bool:
        return known is not None and self.table.snapshot(known.snapshot_id) == known

    def _read(self, ids: Iterable[int]) -> Iterator[Snapshot]:
        """The snapshots of these ids that are still retained."""
        known = self._cache.snapshots
        for snapshot_id in ids:
            is_latest = self.latest is not None and self.latest.snapshot_id == snapshot_id
            snapshot = self.latest if is_latest else known.get(snapshot_id)
            snapshot = snapshot or self.table.snapshot(snapshot_id)
            if snapshot is not None:
                known[snapshot_id] = snapshot
                yield snapshot


def _question(wanted: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, repr(value)) for name, value in wanted.items()))


def retained_snapshots(table: TableReader, since: int | datetime | None) -> list[Snapshot]:
    """The retained snapshots, oldest first: all, those after an id, or those since a time.

    A time without a time zone is UTC. A snapshot that expires meanwhile is left out.

    Raises:
        CatalogError: METADATA_UNREADABLE.
    """
    view = TableView(table)
    if isinstance(since, int):
        return list(view.after_id(since))[::-1]
    snapshots = view.newest_first()
    if since is not None:
        earliest = _utc(since).timestamp() * 1000
        snapshots = takewhile(lambda each: each.time_millis >= earliest, snapshots)
    return list(snapshots)[::-1]


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
