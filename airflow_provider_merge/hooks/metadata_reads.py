"""The metadata of tables that a hook reads: snapshots, partitions, tags and schemas."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.metadata.model import (
    CompactionFacts,
    PartitionChange,
    PartitionFacts,
    Snapshot,
    TableSchema,
    Tag,
)
from airflow_provider_merge.metadata.reader import TableReader
from airflow_provider_merge.metadata.table_view import retained_snapshots
from airflow_provider_merge.storage.failures import reaching
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.request import TableName
from spark_jobs.errors import NotSupportedError


class MetadataReads(ABC):
    """Reads the metadata of the tables that ``table`` finds."""

    @abstractmethod
    def table(self, name: str | TableName) -> TableReader:
        """The metadata of a table, ``database.table``.

        Raises:
            CatalogError: TABLE_NOT_FOUND, WAREHOUSE_ACCESS_DENIED.
            InternalError: STORAGE_UNAVAILABLE.
            RequestError: the name or the connection is invalid.
        """

    def latest_snapshot(self, table: str) -> Snapshot | None:
        """The newest snapshot; None for a table without snapshots. Raises as ``table`` does.

        Raises:
            CatalogError: METADATA_UNREADABLE.
        """
        with self._reading(table) as found:
            return found.latest()

    def snapshot(self, table: str, snapshot_id: int) -> Snapshot | None:
        """The snapshot with an id; None if it never was or has expired. Raises as ``table`` does.

        Raises:
            CatalogError: METADATA_UNREADABLE.
        """
        with self._reading(table) as found:
            return found.snapshot(snapshot_id)

    def snapshots(self, table: str, since: int | datetime | None = None) -> list[Snapshot]:
        """The retained snapshots, oldest first: all, those after an id, or those since a time.

        Raises:
            CatalogError: METADATA_UNREADABLE. And as ``table`` does.
        """
        with self._reading(table) as found:
            return retained_snapshots(found, since)

    def partitions(
        self, table: str, wanted: Mapping[str, Any] | None = None
    ) -> list[PartitionFacts]:
        """The partitions of the newest snapshot; ``wanted`` has values of some partition columns.

        Raises:
            CatalogError: METADATA_UNREADABLE. And as ``table`` does.
            RequestError: a column or a value of ``wanted`` is invalid.
        """
        with self._reading(table) as found:
            return found.partitions(wanted)

    def compaction_facts(
        self,
        table: str,
        partition: Mapping[str, Any] | None = None,
        *,
        small_file_share: float | None = None,
        target_file_size: str | None = None,
        include_pending: bool = False,
    ) -> list[CompactionFacts]:
        """What there is to compact in the partitions of the newest snapshot, sorted by name.

        ``partition`` has values of some partition columns. A file is small below
        ``small_file_share`` (0 to 1) of ``target_file_size`` (``128 mb``); default: the table's
        options, else the format's defaults. ``include_pending``: files that batch readers do not
        see yet count too.

        Raises:
            CatalogError: METADATA_UNREADABLE. And as ``table`` does.
            NotSupportedError: such a table is not compacted here, or an option of it has an
                invalid value.
            RequestError: a parameter, or a column or value of ``partition``, is invalid.
        """
        spec = CompactSpec(
            target_file_size=target_file_size,
            small_file_share=small_file_share,
            include_pending=include_pending,
        )
        with self._reading(table) as found:
            return found.compaction_facts(spec, partition)

    def tags(self, table: str) -> list[Tag]:
        """All tags by name, each with its snapshot.

        Raises:
            CatalogError: METADATA_UNREADABLE. And as ``table`` does.
        """
        with self._reading(table) as found:
            tags = (found.tag(name) for name in found.tags())
            return [tag for tag in tags if tag is not None]

    def branches(self, table: str) -> list[str]:
        """The names of all branches but the main one, sorted.

        Raises:
            CatalogError: METADATA_UNREADABLE. And as ``table`` does.
        """
        with self._reading(table) as found:
            return found.branches()

    def schema(self, table: str | TableName, schema_id: int | None = None) -> TableSchema:
        """The schema with an id; default: the newest.

        Raises:
            CatalogError: METADATA_UNREADABLE. And as ``table`` does.
        """
        with self._reading(table) as found:
            return found.schema(schema_id)

    def row_count(self, table: str) -> int:
        """The number of rows in the newest snapshot, as a reader sees them.

        Raises:
            CatalogError: METADATA_UNREADABLE. And as ``table`` does.
            NotSupportedError: metadata does not tell the number, as on a primary-key table that is
                not compacted.
        """
        with self._reading(table) as found:
            count = found.row_count()
        if count is None:
            raise NotSupportedError(
                f"The metadata of {table} does not tell its number of rows: it has uncompacted "
                "versions of keys, or deletes whose rows nobody counted.",
                "Count the rows with a query, or use partitions(), whose records are stored rows.",
            )
        return count

    def diff(self, table: str, before: int, after: int) -> list[PartitionChange]:
        """The differences between two retained snapshots, by partition.

        Raises:
            CatalogError: METADATA_UNREADABLE. And as ``table`` does.
            RequestError: one of the snapshots never existed or has expired.
        """
        with self._reading(table) as reader:
            sides = [reader.snapshot(each) for each in (before, after)]
            for snapshot_id, snapshot in zip((before, after), sides, strict=True):
                if snapshot is None:
                    raise invalid(
                        "snapshot", f"{table} has no snapshot {snapshot_id}; it may have expired"
                    )
            return reader.diff(*(each for each in sides if each is not None))

    @contextmanager
    def _reading(self, name: str | TableName) -> Iterator[TableReader]:
        table = self.table(name)
        with reaching(table.location):
            yield table
