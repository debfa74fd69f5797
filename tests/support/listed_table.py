"""A table of no real format, whose snapshots are a list in memory and whose ids have no order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_merge.hooks.metadata_reads import MetadataReads
from airflow_provider_merge.metadata.model import (
    Column,
    CompactionFacts,
    PartitionChange,
    PartitionFacts,
    Snapshot,
    TableSchema,
    Tag,
)
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.partition_names import partition_name
from spark_jobs.contract.request import TableName

SCHEMA = TableSchema(0, (Column("day", "text", 0),), ("day",), (), {})


@dataclass(frozen=True)
class ListedHistory:
    """Ids as they were committed; of expired ones nothing is known but whether there are any."""

    ids: Sequence[int]
    is_complete: bool

    def after(self, snapshot_id: int) -> Sequence[int] | None:
        """The ids behind one; None: it is not in the list."""
        if snapshot_id == 0:
            return self.ids
        if snapshot_id not in self.ids:
            return None
        return self.ids[self.ids.index(snapshot_id) + 1 :]

    def expired_after(self, snapshot_id: int) -> Sequence[int]:
        """None is known."""
        return ()


@dataclass(frozen=True)
class ListedFilter:
    """A value of ``day``, or none."""

    wanted: Mapping[str, Any]

    @property
    def columns(self) -> tuple[int, ...]:
        """The position of ``day``, if a value is asked for."""
        return (0,) if self.wanted else ()

    @property
    def values(self) -> tuple[Any, ...]:
        """The value that is asked for."""
        return tuple(self.wanted.values())

    def values_of(self, partition: Mapping[str, str | None]) -> tuple[Any, ...]:
        """What a partition has in the columns."""
        return tuple(partition[name] for name in self.wanted)

    def fits(self, partition: Mapping[str, str | None]) -> bool:
        """Whether the partition is asked for."""
        return self.values_of(partition) == self.values


@dataclass
class ListedTable:
    """The table ``shop.orders``; tests change ``snapshots`` and ``days`` as other writers do."""

    name: TableName = field(default_factory=lambda: TableName("shop", "orders"))
    location: str = "/listed"
    snapshots: list[Snapshot] = field(default_factory=list)
    days: dict[int, str] = field(default_factory=dict)
    is_complete: bool = True

    def add(
        self, snapshot_id: int, time_millis: int, day: str = "monday", *, keeps_rows: bool = False
    ) -> None:
        """Commit a snapshot that changes one day."""
        kind = "replace" if keeps_rows else "append"
        self.snapshots.append(Snapshot(snapshot_id, 0, kind, keeps_rows, time_millis, 1, {}))
        self.days[snapshot_id] = day

    def latest(self) -> Snapshot | None:
        """The last of the list."""
        return self.snapshots[-1] if self.snapshots else None

    def snapshot(self, snapshot_id: int) -> Snapshot | None:
        """The one of this id."""
        return next((each for each in self.snapshots if each.snapshot_id == snapshot_id), None)

    def history(self, newest: Snapshot | None) -> ListedHistory:
        """The list up to ``newest``."""
        ids = [each.snapshot_id for each in self.snapshots]
        until = ids.index(newest.snapshot_id) + 1 if newest else 0
        return ListedHistory(ids[:until], self.is_complete)

    def tags(self) -> list[str]:
        """There is none."""
        return []

    def tag(self, name: str) -> Tag | None:
        """There is none."""
        return None

    def branches(self) -> list[str]:
        """There is none."""
        return []

    @property
    def published_folders(self) -> tuple[str, ...]:
        """It has no files."""
        return ()

    def schema(self, schema_id: int | None = None) -> TableSchema:
        """The only one."""
        return SCHEMA

    def partition_filter(self, schema: TableSchema, values: Mapping[str, Any]) -> ListedFilter:
        """The filter for a day."""
        return ListedFilter(values)

    def partitions(
        self, wanted: Mapping[str, Any] | None = None, snapshot: Snapshot | None = None
    ) -> list[PartitionFacts]:
        """The days that snapshots changed, each with one row."""
        chosen = ListedFilter(wanted or {})
        found = [{"day": each} for each in dict.fromkeys(self.days.values())]
        facts = [PartitionFacts(each, 1, 1, 1, 1, None) for each in found if chosen.fits(each)]
        return sorted(facts, key=lambda each: each.name)

    def compaction_facts(
        self,
        spec: CompactSpec,
        wanted: Mapping[str, Any] | None = None,
        snapshot: Snapshot | None = None,
    ) -> list[CompactionFacts]:
        """Each day has a small file for each of its snapshots."""
        counts = Counter(self.days.values())
        return [
            CompactionFacts(each.values, n, n, n, n, n, n, 0, {}, 0, 0)
            for each in self.partitions(wanted)
            for n in [counts[str(each.values["day"])]]
        ]

    def row_count(self, snapshot: Snapshot | None = None) -> int | None:
        """One row for each day."""
        return len(self.partitions())

    def touched(self, snapshot: Snapshot) -> list[Mapping[str, str | None]]:
        """The day that the snapshot changed."""
        return [] if snapshot.keeps_rows else [{"day": self.days[snapshot.snapshot_id]}]

    def diff(self, before: Snapshot, after: Snapshot) -> list[PartitionChange]:
        """The days of the snapshots between the two."""
        start, end = self.snapshots.index(before), self.snapshots.index(after)
        days = (self.touched(each) for each in self.snapshots[start + 1 : end + 1])
        changes = [PartitionChange(values, 1, 0, 0, 1) for each in days for values in each]
        return sorted(changes, key=lambda each: partition_name(each.values))


class ListedHook(MetadataReads):
    """Finds the one table of a connection of the type ``listed``."""

    tables: dict[str, ListedTable] = {}  # noqa: RUF012 - by the connection's id

    def __init__(self, conn_id: str, connection: object = None) -> None:
        self.conn_id = conn_id

    def table(self, name: str | TableName) -> ListedTable:
        """The table, whatever its name."""
        return self.tables[self.conn_id]
