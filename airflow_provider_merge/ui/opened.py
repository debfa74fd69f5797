"""Tables that the API has read: what never changes is kept for a while, within bounds."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from airflow_provider_merge.hooks.catalog import catalog_hook_once, other_table
from airflow_provider_merge.metadata.model import CompactionFacts, PartitionFacts, Snapshot
from airflow_provider_merge.metadata.page_facts import FileChange, PageFacts, Ref, Totals
from airflow_provider_merge.metadata.reader import TableReader
from airflow_provider_merge.metadata.snapshot_cache import SnapshotCache
from airflow_provider_merge.metadata.table_view import TableView
from airflow_provider_merge.storage.locations import is_local
from airflow_provider_merge.ui.threads import spread
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CatalogError, ErrorCode, JobError, NotSupportedError

# Seconds for which one look at a table serves all requests of a page.
_FRESH: Final = 5.0
_MOST_TABLES: Final = 12
_MOST_PARTITIONS: Final = 50_000
_MOST_COUNTED: Final = 5000
_READERS: Final = 8

# A snapshot, and the newest schema.
_Now = tuple[Snapshot | None, int]


@dataclass
class OpenTable:
    """A table as ``look`` has found it. Only one thread at a time works on it (``lock``).

    ``counted`` and ``compactable`` have the partitions of a snapshot under a schema; ``changes``
    and ``totals`` have the files of snapshots by id.
    """

    connection: str
    name: TableName
    lock: threading.RLock = field(default_factory=threading.RLock)
    cache: SnapshotCache = field(default_factory=SnapshotCache)
    changes: dict[int, FileChange | None] = field(default_factory=dict)
    totals: dict[int, Totals] = field(default_factory=dict)
    counted: tuple[_Now, list[PartitionFacts]] | None = None
    compactable: tuple[_Now, Mapping[str, CompactionFacts]] | None = None
    _looked: float = float("-inf")
    view: TableView = field(init=False)
    facts: PageFacts = field(init=False)
    _refs: list[Ref] | None = None

    def look(self) -> None:
        """Open the table anew, unless that was done a moment ago.

        Raises:
            JobError: the table or its metadata cannot be read.
        """
        if time.monotonic() < self._looked + _FRESH:
            return
        hook = catalog_hook_once(self.connection)
        others = partial(other_table, hook)
        view = TableView(hook.table(self.name), self.cache, others)
        known = self.cache.latest
        if known not in (None, view.latest) and not self.cache.snapshots:
            # The cache was emptied: ids may mean other snapshots now.
            self.changes.clear()
            self.totals.clear()
        self.view, self.facts, self._refs = view, hook.page_facts(view.table), None
        self._looked = time.monotonic()

    @property
    def table(self) -> TableReader:
        """Its reader."""
        return self.view.table

    def let_go(self) -> None:
        """Drop a look that is not fresh any more, unless a thread works on the table.

        A reader may hold the metadata of thousands of snapshots: tens of megabytes.
        """
        if not self.lock.acquire(blocking=False):
            return
        try:
            if time.monotonic() >= self._looked + _FRESH:
                for name in ("view", "facts"):
                    self.__dict__.pop(name, None)
        finally:
            self.lock.release()

    def refs(self) -> list[Ref]:
        """Its tags and branches; none if they cannot be read, which ``facts`` would tell."""
        if self._refs is None:
            try:
                self._refs = self.facts.refs()
            except JobError:
                self._refs = []
        return self._refs

    def snapshot(self, snapshot_id: int) -> Snapshot:
        """A retained snapshot.

        Raises:
            CatalogError: SNAPSHOT_NOT_FOUND.
        """
        known = self.cache.snapshots.get(snapshot_id)
        snapshot = known or self.table.snapshot(snapshot_id)
        if snapshot is None:
            raise CatalogError(
                ErrorCode.SNAPSHOT_NOT_FOUND,
                f"{self.name} has no snapshot {snapshot_id}; it may have expired.",
                "Choose one of those that are listed.",
            )
        self.cache.snapshots[snapshot_id] = snapshot
        return snapshot

    def partitions(self) -> list[PartitionFacts]:
        """The partitions of the newest snapshot."""
        key = (self.view.latest, self.view.schema.schema_id)
        if self.counted is None or self.counted[0] != key:
            found = self.table.partitions(None, self.view.latest) if self.view.latest else []
            self.counted = (key, found)
        return self.counted[1]

    def compaction(self) -> Mapping[str, CompactionFacts]:
        """What a compaction would find in the newest snapshot, by the name of the partition.

        Raises:
            NotSupportedError: it cannot be told.
        """
        key = (self.view.latest, self.view.schema.schema_id)
        if self.compactable is None or self.compactable[0] != key:
            found = self.facts.compaction(self.view.latest) if self.view.latest else []
            self.compactable = (key, {each.name: each for each in found})
        return self.compactable[1]

    def known_compaction(self) -> Mapping[str, CompactionFacts] | None:
        """The same of the partitions that files were written to; None where it cannot be told."""
        try:
            compaction = self.compaction()
        except NotSupportedError:
            return None
        return {
            **compaction,
            **{stored.name: stored for each in compaction.values() for stored in each.stored},
        }

    def total(self, snapshot: Snapshot) -> Totals:
        """Files and bytes of a snapshot."""
        totals = self.facts.totals(snapshot) or self.totals.get(snapshot.snapshot_id)
        if totals is None:
            is_latest = snapshot == self.view.latest
            found = self.partitions() if is_latest else self.table.partitions(None, snapshot)
            totals = Totals(sum(each.files for each in found), sum(each.size for each in found))
            if len(self.totals) >= _MOST_COUNTED:
                self.totals.clear()
            self.totals[snapshot.snapshot_id] = totals
        return totals

    def read_changes(self, snapshots: Sequence[Snapshot]) -> None:
        """Have in ``changes`` the files that these snapshots added and removed."""
        if len(self.changes) + len(snapshots) > _MOST_COUNTED:
            self.changes.clear()
        missing = [each for each in snapshots if each.snapshot_id not in self.changes]
        readers = 1 if is_local(self.table.location) else _READERS
        found = spread(self.facts.change, missing, readers)
        for snapshot, change in zip(missing, found, strict=True):
            self.changes[snapshot.snapshot_id] = change.result()


@dataclass
class OpenTables:
    """The tables that were looked at last."""

    _tables: OrderedDict[tuple[str, TableName], OpenTable] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def table(self, connection: str, name: TableName) -> OpenTable:
        """A table, not yet looked at or kept from an earlier request."""
        with self._lock:
            key = (connection, name)
            found = self._tables.setdefault(key, OpenTable(connection, name))
            self._tables.move_to_end(key)
            if len(self._tables) > _MOST_TABLES:
                self._tables.popitem(last=False)
            return found

    def give_back(self, table: OpenTable) -> None:
        """Forget counted partitions, of those that are used least first, until few are left."""
        with self._lock:
            for each in self._tables.values():
                each.let_go()
            weight = sum(_weight(each) for each in self._tables.values())
            for open_table in (*self._tables.values(), table):
                if weight <= _MOST_PARTITIONS:
                    break
                weight -= _weight(open_table)
                open_table.counted = open_table.compactable = None


def _weight(table: OpenTable) -> int:
    return sum(len(each[1]) for each in (table.counted, table.compactable) if each)
