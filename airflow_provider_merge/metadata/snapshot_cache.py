"""What earlier polls have read of a table's snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from airflow_provider_merge.metadata.model import CompactionFacts, Snapshot

_MOST_KEPT: Final = 2000


@dataclass
class SnapshotCache:
    """Snapshots of one table by id, and the partitions that they touched.

    A snapshot never changes, but after a rollback another one may get its id: then nothing is kept.
    ``compaction`` has what there is to compact, by question, of the snapshot and the schema id
    ``compaction_of``.
    """

    latest: Snapshot | None = None
    snapshots: dict[int, Snapshot] = field(default_factory=dict)
    touched: dict[int, list[Mapping[str, str | None]]] = field(default_factory=dict)
    compaction_of: tuple[Snapshot | None, int] | None = None
    compaction: dict[Any, list[CompactionFacts]] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        """Whether more is kept than a cache may hold."""
        return len(self.snapshots) > _MOST_KEPT

    def clear(self) -> None:
        """Start anew."""
        self.snapshots.clear()
        self.touched.clear()
