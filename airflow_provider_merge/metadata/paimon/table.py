"""Everything that a Paimon table's metadata tells, without pypaimon, Spark or a JVM."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

from airflow_provider_merge.metadata.model import (
    CompactionFacts,
    PartitionChange,
    PartitionFacts,
    TableSchema,
    Tag,
)
from airflow_provider_merge.metadata.paimon.binary_row import decoded
from airflow_provider_merge.metadata.paimon.compaction import CompactionCount
from airflow_provider_merge.metadata.paimon.manifests import DataFile, Manifests
from airflow_provider_merge.metadata.paimon.partition_filter import PaimonPartitionFilter
from airflow_provider_merge.metadata.paimon.partitions import (
    DifferingPartition,
    facts_of,
    marks_by_file,
    visible_rows,
)
from airflow_provider_merge.metadata.paimon.schema import parsed_schema
from airflow_provider_merge.metadata.paimon.snapshots import (
    PaimonHistory,
    PaimonSnapshot,
    PaimonSnapshots,
    parsed_snapshot,
)
from airflow_provider_merge.storage.failures import unreadable
from airflow_provider_merge.storage.files import list_names, read_text
from airflow_provider_merge.storage.locations import child
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.partition_names import partition_name, partition_text
from spark_jobs.contract.request import TableName
from spark_jobs.contract.table_name import MAIN_BRANCH
from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.formats.paimon.compaction import refuse_uncompactable
from spark_jobs.formats.paimon.metadata_files import (
    entry_name,
    entry_path,
    ids_of,
    manifest_folder,
    names_of,
)

T = TypeVar("T")
_ATTEMPTS = 3


@dataclass(frozen=True)
class PaimonTable:
    """The table ``name``, whose files lie at ``location`` (a path or URI).

    ``branch`` is empty for the main branch. ``storage_options`` open the location's file system;
    they hold secrets.
    """

    name: TableName
    location: str
    branch: str = ""
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def find(
        cls, warehouse: str, name: TableName, storage_options: Mapping[str, Any]
    ) -> PaimonTable:
        """The table of a filesystem catalog; ``<table>$branch_<name>`` means a branch of it.

        Raises:
            CatalogError: TABLE_NOT_FOUND.
            OSError: the storage cannot be reached.
        """
        main = TableName(name.database, name.without_branch)
        whole = PaimonSnapshots.find(warehouse, main, storage_options)
        return cls.at(whole.location, name, storage_options)

    @classmethod
    def at(cls, location: str, name: TableName, storage_options: Mapping[str, Any]) -> PaimonTable:
        """The table that lies at ``location``, or the branch of it that ``name`` means.

        Raises:
            CatalogError: TABLE_NOT_FOUND.
            OSError: the storage cannot be reached.
        """
        branch = "" if name.branch == MAIN_BRANCH else name.branch
        table = cls(name, location, branch, storage_options)
        if not table._schema_ids():
            raise CatalogError(
                ErrorCode.TABLE_NOT_FOUND,
                f"there is no table {name} at {table.root}",
                "Correct the table's name, or the warehouse of the catalog connection.",
            )
        return table

    @property
    def root(self) -> str:
        """Where snapshots, tags and schemas of the branch lie."""
        base = self.location.rstrip("/")
        return child(f"{base}/branch", entry_name("branch", self.branch)) if self.branch else base

    @property
    def published_folders(self) -> tuple[str, ...]:
        """Where each commit makes files."""
        guards, snapshots = (child(self.root, name) for name in ("consumer", "snapshot"))
        return guards, manifest_folder(self.location.rstrip("/")), snapshots

    @property
    def snapshots(self) -> PaimonSnapshots:
        """The table's snapshots, by id."""
        return PaimonSnapshots(self.root, self.storage_options)

    @property
    def manifests(self) -> Manifests:
        """The manifests, which all branches share."""
        return Manifests(manifest_folder(self.location.rstrip("/")), self.storage_options)

    def latest(self) -> PaimonSnapshot | None:
        """The newest snapshot; None for a table without one."""
        return self.snapshots.latest()

    def snapshot(self, snapshot_id: int) -> PaimonSnapshot | None:
        """The snapshot of this id; None when it never was or has expired."""
        return self.snapshots.snapshot(snapshot_id)

    def history(self, newest: PaimonSnapshot | None) -> PaimonHistory:
        """The retained snapshots up to ``newest``, which may have expired meanwhile."""
        if newest is None:
            return PaimonHistory(())
        before = (each for each in self.snapshots.ids() if each < newest.snapshot_id)
        return PaimonHistory((*before, newest.snapshot_id))

    def schema(self, schema_id: int | None = None) -> TableSchema:
        """The schema of an id, or the newest one."""
        if schema_id is None:
            schema_id = max(self._schema_ids(), default=0)
        path = entry_path(self.root, "schema", schema_id)
        text = read_text(path, self.storage_options)
        if text is None:
            raise unreadable(path, "is gone")
        return parsed_schema(path, text)

    def tags(self) -> list[str]:
        """The names of all tags, sorted."""
        return names_of("tag", self._entries_in("tag"))

    def tag(self, name: str) -> Tag | None:
        """The tag of this name; None: there is none."""
        path = child(f"{self.root}/tag", entry_name("tag", name))
        text = read_text(path, self.storage_options)
        return None if text is None else Tag(name, parsed_snapshot(path, text))

    def branches(self) -> list[str]:
        """The names of all branches but the main one, sorted."""
        names = list_names(f"{self.location.rstrip('/')}/branch", self.storage_options)
        return names_of("branch", names)

    def partition_filter(
        self, schema: TableSchema, values: Mapping[str, Any]
    ) -> PaimonPartitionFilter:
        """The filter for values that are given as text or in the column's own type."""
        return PaimonPartitionFilter.of(schema, values)

    def partitions(
        self, wanted: Mapping[str, Any] | None = None, snapshot: PaimonSnapshot | None = None
    ) -> list[PartitionFacts]:
        """The partitions that a snapshot (by default the newest) has rows in, sorted by name.

        ``wanted`` has values of some partition columns, as text or in their own types. A table
        without partitions has one, without values, once it has data.
        """
        if snapshot is None:
            return self._of_latest(lambda newest: self.partitions(wanted, newest)) or []
        schema = self.schema(snapshot.schema_id)
        marks = marks_by_file(self.manifests.marked_rows(snapshot))
        found = self._files_by_values(snapshot, schema, wanted)
        facts = [facts_of(schema, values, files, marks) for values, files in found]
        return sorted(facts, key=lambda each: each.name)

    def compaction_facts(
        self,
        spec: CompactSpec,
        wanted: Mapping[str, Any] | None = None,
        snapshot: PaimonSnapshot | None = None,
    ) -> list[CompactionFacts]:
        """What a compaction by ``spec`` would find; partitions and errors as in ``partitions``."""
        if snapshot is None:
            found = self._of_latest(lambda newest: self.compaction_facts(spec, wanted, newest))
            return found or []
        # A compaction looks at the newest options, which may be newer than the snapshot.
        schema, options = self.schema(snapshot.schema_id), self.schema().options
        refuse_uncompactable(self.name, options)
        marks = marks_by_file(self.manifests.marked_rows(snapshot))
        count = CompactionCount.of(schema, options, marks, spec)
        partitions = self._files_by_values(snapshot, schema, wanted)
        facts = [count.facts(values, files) for values, files in partitions]
        return sorted(facts, key=lambda each: each.name)

    def row_count(self, snapshot: PaimonSnapshot | None = None) -> int | None:
        """The rows that a reader of a snapshot (by default the newest) finds.

        None: only reading can tell; ``PartitionFacts`` says when.
        """
        counts = [each.rows for each in self.partitions(snapshot=snapshot)]
        return None if None in counts else sum(count or 0 for count in counts)

    def touched(self, snapshot: PaimonSnapshot) -> list[Mapping[str, str | None]]:
        """The partitions in which a snapshot added, removed or marked rows; sorted.

        A snapshot that only compacted files has touched none. What only deletion vectors changed is
        known while the snapshot before is retained.
        """
        if snapshot.keeps_rows:
            return []
        rows = self.manifests.changed_partitions(snapshot)
        before = self.snapshots.snapshot(snapshot.snapshot_id - 1)
        if before is not None and before.index_manifest != snapshot.index_manifest:
            changed = self.manifests.vector_files(before) ^ self.manifests.vector_files(snapshot)
            rows |= {row for row, _ in changed}
        schema = self.schema(snapshot.schema_id)
        with self._decoding():
            found = [self._values(schema, row) for row in rows]
        return sorted(found, key=partition_name)

    def diff(self, before: PaimonSnapshot, after: PaimonSnapshot) -> list[PartitionChange]:
        """What two snapshots differ in, by partition; those that do not differ are left out."""
        schema = self.schema(after.schema_id)
        changes = [
            PartitionChange(
                values=self.partition_values(schema, partition.row),
                files_added=len(partition.added),
                files_removed=len(partition.removed),
                rows_before=visible_rows(schema, list(partition.old.values()), partition.old_marks),
                rows_after=visible_rows(schema, list(partition.new.values()), partition.new_marks),
            )
            for partition in self.differing(before, after)
        ]
        return sorted(changes, key=lambda each: partition_name(each.values))

    def differing(
        self, before: PaimonSnapshot, after: PaimonSnapshot
    ) -> Iterator[DifferingPartition]:
        """The partitions that differ, in any order."""
        sides = [self._by_partition(each) for each in (before, after)]
        marks = [marks_by_file(self.manifests.marked_rows(each)) for each in (before, after)]
        for row in sides[0].keys() | sides[1].keys():
            old, new = (side.get(row, {}) for side in sides)
            marked = [{k: v for k, v in each.items() if k[0] == row} for each in marks]
            if old.keys() != new.keys() or marked[0] != marked[1]:
                yield DifferingPartition(row, old, new, *marked)

    def partition_values(self, schema: TableSchema, row: bytes) -> dict[str, str | None]:
        """The texts of a partition's values by column.

        Raises:
            CatalogError: METADATA_UNREADABLE.
        """
        with self._decoding():
            return self._values(schema, row)

    def _files_by_values(
        self, snapshot: PaimonSnapshot, schema: TableSchema, wanted: Mapping[str, Any] | None
    ) -> list[tuple[tuple[Any, ...], list[DataFile]]]:
        """The values of each partition that is asked for, with its files."""
        chosen = PaimonPartitionFilter.of(schema, wanted or {})
        files: dict[bytes, list[DataFile]] = defaultdict(list)
        for file in self._live_files(snapshot, chosen):
            files[file.partition].append(file)
        with self._decoding():
            return [(decoded(row, schema.partition_types), each) for row, each in files.items()]

    def _by_partition(self, snapshot: PaimonSnapshot) -> dict[bytes, dict[Any, DataFile]]:
        files_by_partition: dict[bytes, dict[Any, DataFile]] = defaultdict(dict)
        for file in self._live_files(snapshot):
            files_by_partition[file.partition][file.bucket, file.level, file.name] = file
        return files_by_partition

    def _live_files(
        self, snapshot: PaimonSnapshot, chosen: PaimonPartitionFilter | None = None
    ) -> list[DataFile]:
        if chosen is None or not chosen.wanted:
            return self.manifests.live_files(snapshot, lambda _low, _high: True)
        keeps = cache(lambda row: chosen.keeps(decoded(row, chosen.types)))
        return self.manifests.live_files(snapshot, chosen.may_hold, keeps)

    def _of_latest(self, look: Callable[[PaimonSnapshot], T]) -> T | None:
        """What ``look`` finds in the newest snapshot, whose files may expire meanwhile."""
        for attempt in range(_ATTEMPTS):
            newest = self.latest()
            if newest is None:
                return None
            try:
                return look(newest)
            except CatalogError:
                still_there = self.snapshots.snapshot(newest.snapshot_id) is not None
                if still_there or attempt == _ATTEMPTS - 1:
                    raise
        return None

    def _values(self, schema: TableSchema, row: bytes) -> dict[str, str | None]:
        values = map(partition_text, decoded(row, schema.partition_types))
        return dict(zip(schema.partition_keys, values, strict=True))

    @contextmanager
    def _decoding(self) -> Iterator[None]:
        try:
            yield
        except (ValueError, struct.error, OverflowError) as error:
            problem = f"holds a partition that cannot be read: {repr(error)[:200]}"
            raise unreadable(self.manifests.folder, problem) from None

    def _schema_ids(self) -> list[int]:
        return ids_of("schema", self._entries_in("schema"))

    def _entries_in(self, folder: str) -> list[str]:
        return list_names(f"{self.root}/{folder}", self.storage_options)
