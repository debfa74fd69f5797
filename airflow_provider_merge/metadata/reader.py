"""What a table format implements, so that sensors, triggers, hooks and lineage can read its tables.

A reader reads metadata only: it needs neither Spark nor a JVM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from airflow_provider_merge.metadata.model import (
    CompactionFacts,
    PartitionChange,
    PartitionFacts,
    Snapshot,
    TableSchema,
    Tag,
)
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.request import TableName


class History(Protocol):
    """The retained snapshots of a table up to a newest one; their order is the history's own."""

    @property
    def ids(self) -> Sequence[int]:
        """Their ids, oldest first; the newest is always there."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether no snapshot has expired."""
        ...

    def after(self, snapshot_id: int) -> Sequence[int] | None:
        """The ids behind a snapshot, oldest first: all of them behind id 0, or an expired snapshot.

        None: the snapshot is not part of this history, or it cannot be told.
        """
        ...

    def expired_after(self, snapshot_id: int) -> Sequence[int]:
        """The ids of expired snapshots behind one, oldest first, as far as the format tells."""
        ...


class PartitionFilter(Protocol):
    """A value for some partition columns."""

    @property
    def columns(self) -> tuple[int, ...]:
        """The positions of the columns that have a value here, in their order."""
        ...

    @property
    def values(self) -> tuple[Any, ...]:
        """What is asked for, in the order of ``columns``."""
        ...

    def values_of(self, partition: Mapping[str, str | None]) -> tuple[Any, ...]:
        """What a partition, whose values are text, has in ``columns``."""
        ...

    def fits(self, partition: Mapping[str, str | None]) -> bool:
        """Whether a partition, whose values are text, is asked for."""
        ...


class TableReader(Protocol):
    """The metadata of one table as it is now. ``snapshot`` parameters are this reader's own.

    Raises, everywhere:
        CatalogError: METADATA_UNREADABLE.
        OSError: the storage cannot be reached.
    """

    @property
    def published_folders(self) -> tuple[str, ...]:
        """Where each commit makes files, as paths or URIs, whether or not they exist yet."""
        ...

    @property
    def name(self) -> TableName:
        """The table."""
        ...

    @property
    def location(self) -> str:
        """Path or URI of the table's files."""
        ...

    def latest(self) -> Snapshot | None:
        """The newest snapshot; None for a table without one."""
        ...

    def snapshot(self, snapshot_id: int) -> Snapshot | None:
        """The retained snapshot of this id; None: it never was, has expired or was rolled back."""
        ...

    def history(self, newest: Any) -> History:
        """The retained snapshots up to ``newest``; None: the table has none."""
        ...

    def tags(self) -> list[str]:
        """The names of all tags, sorted."""
        ...

    def tag(self, name: str) -> Tag | None:
        """The tag of this name; None: there is none."""
        ...

    def branches(self) -> list[str]:
        """The names of all branches but the main one, sorted."""
        ...

    def schema(self, schema_id: int | None = None) -> TableSchema:
        """The schema of an id, or the newest one."""
        ...

    def partition_filter(self, schema: TableSchema, values: Mapping[str, Any]) -> PartitionFilter:
        """The filter for values that are given as text or in the column's own type.

        Raises:
            RequestError: REQUEST_INVALID: no partition column has that name, or a value is not of
                its type.
        """
        ...

    def partitions(
        self, wanted: Mapping[str, Any] | None = None, snapshot: Any = None
    ) -> list[PartitionFacts]:
        """The partitions that a snapshot (by default the newest) has rows in, sorted by name.

        Raises:
            RequestError: as ``partition_filter``.
        """
        ...

    def compaction_facts(
        self, spec: CompactSpec, wanted: Mapping[str, Any] | None = None, snapshot: Any = None
    ) -> list[CompactionFacts]:
        """What a compaction by ``spec`` would find, in partitions chosen as by ``partitions``.

        Sizes, shares and what is included are those of ``spec``, else the table's options.

        Raises:
            RequestError: as ``partition_filter``.
            NotSupportedError: such a table is not compacted here, or an option of it has an
                invalid value.
        """
        ...

    def row_count(self, snapshot: Any = None) -> int | None:
        """The rows that a reader of a snapshot (by default the newest) finds; None: not known."""
        ...

    def touched(self, snapshot: Any) -> list[Mapping[str, str | None]]:
        """The partitions whose rows a snapshot changed; none of one that ``keeps_rows``."""
        ...

    def diff(self, before: Any, after: Any) -> list[PartitionChange]:
        """What two snapshots differ in, by partition; those that do not differ are left out."""
        ...
