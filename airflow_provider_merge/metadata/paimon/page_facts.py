"""What the pages about tables show of a Paimon table."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import reduce
from typing import Any, Final

from airflow_provider_merge.metadata.differing_files import (
    DifferingFiles,
    RowColumn,
    RowFile,
    obstacle_of,
)
from airflow_provider_merge.metadata.model import CompactionFacts, TableSchema
from airflow_provider_merge.metadata.page_facts import (
    TABLES_OWN,
    Expiry,
    FileChange,
    Hold,
    Ref,
    Totals,
)
from airflow_provider_merge.metadata.paimon.binary_row import decoded
from airflow_provider_merge.metadata.paimon.manifests import DataFile
from airflow_provider_merge.metadata.paimon.partitions import DifferingPartition, is_on
from airflow_provider_merge.metadata.paimon.snapshots import (
    PaimonSnapshot,
    PaimonSnapshots,
    file_name,
)
from airflow_provider_merge.metadata.paimon.table import PaimonTable
from airflow_provider_merge.storage.failures import unreadable
from airflow_provider_merge.storage.files import list_names, modified, read_text
from airflow_provider_merge.storage.locations import child
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.maintenance import ExpireSnapshotsSpec
from spark_jobs.contract.partition_names import partition_name
from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.paimon.compaction import CompactionThresholds, refuse_uncompactable
from spark_jobs.formats.paimon.expiry import (
    Limits,
    commit_millis,
    first_retained,
    held_from,
    is_holding,
)
from spark_jobs.formats.paimon.metadata_files import (
    entry_name,
    entry_path,
    guarding_operation,
    ids_of,
    names_of,
    next_snapshot,
)
from spark_jobs.formats.paimon.paths import (
    PartitionKey,
    PartitionLayout,
    bucket_directory,
    data_root,
)
from spark_jobs.formats.paimon.refused_options import refuse_options

# Each is a file of its own.
_MOST_REFS: Final = 200
_READERS: Final = 8
_MOST_EXPIRING: Final = 1000
_PRECISION: Final = re.compile(r"TIMESTAMP(?:_LTZ)? *\( *(\d+)")
_MARKED: Final = "Deletion vectors mark rows of its files, and are not read here."
_REMEDY: Final = "Compare the table at both snapshots with a query."


@dataclass(frozen=True)
class PaimonPageFacts:
    """More of the metadata of ``table``."""

    table: PaimonTable

    def writer(self, snapshot: PaimonSnapshot) -> str:
        """The commit user."""
        return snapshot.commit_user

    def rows(self, snapshot: PaimonSnapshot) -> tuple[int, int] | None:
        """Its own count, which is one number for both."""
        count = 0 if snapshot.keeps_rows else snapshot.delta_record_count
        return None if count is None else (max(count, 0), max(-count, 0))

    def totals(self, snapshot: PaimonSnapshot) -> Totals | None:
        """Nothing: a snapshot of Paimon's does not count its files."""

    def change(self, snapshot: PaimonSnapshot) -> FileChange:
        """What the snapshot's own manifests add and remove."""
        files, size, rows = [0, 0], [0, 0], [0, 0]
        for is_added, file in self.table.manifests.delta_files(snapshot):
            place = 0 if is_added else 1
            files[place] += 1
            size[place] += file.size
            rows[place] += file.rows
        return FileChange(*files, *size, *rows)

    def refs(self) -> list[Ref]:
        """Branches, by the first snapshot that they still have, and tags."""
        branches, tags = self.table.branches()[-_MOST_REFS:], self.table.tags()[-_MOST_REFS:]
        with ThreadPoolExecutor(_READERS) as readers:
            begins = list(readers.map(self._branch_begin, branches))
            tagged = list(readers.map(self.table.tag, tags))
        refs = [Ref(n, "branch", each) for n, each in zip(branches, begins, strict=True) if each]
        return refs + [Ref(each.name, "tag", each.snapshot.snapshot_id) for each in tagged if each]

    def holds(self) -> list[Hold]:
        """Consumers, and the guards of operations that are not abandoned."""
        folder, holds = f"{self.table.root}/consumer", []
        names = names_of("consumer", list_names(folder, self.table.storage_options))
        for name in names[:_MOST_REFS]:
            path = child(folder, entry_name("consumer", name))
            text = read_text(path, self.table.storage_options)
            if text is None:
                continue
            try:
                held = next_snapshot(json.loads(text))
            except (ValueError, KeyError, TypeError, RecursionError):
                raise unreadable(path, "is not a consumer") from None
            operation = guarding_operation(name)
            if operation is None:
                holds.append(Hold(name, "consumer", held))
            elif is_holding(name, modified(path, self.table.storage_options), datetime.now(UTC)):
                holds.append(Hold(operation, "operation", held))
        return holds

    def schema_ids(self) -> list[int]:
        """The ids of all schemas."""
        names = list_names(f"{self.table.root}/schema", self.table.storage_options)
        return ids_of("schema", names)

    def compaction(self, snapshot: PaimonSnapshot) -> list[CompactionFacts]:
        """What this project's compaction would find."""
        return self.table.compaction_facts(CompactSpec(), {}, snapshot)

    def differing_files(
        self, before: PaimonSnapshot, after: PaimonSnapshot
    ) -> list[DifferingFiles]:
        """Those of tables whose rows are each in one file."""
        return differing_files(self.table, before, after)

    def row_columns(self, snapshot: PaimonSnapshot) -> list[RowColumn]:
        """Those of its schema, which its files were written with."""
        columns = self.table.schema(snapshot.schema_id).columns
        return [RowColumn(each.name, each.type) for each in columns]

    def file_options(self, location: str) -> Mapping[str, Any]:
        """Those of the warehouse."""
        del location
        return self.table.storage_options

    def refuse_compaction(self, spec: CompactSpec) -> None:
        """By its options."""
        schema, name = self.table.schema(), self.table.name
        refuse_uncompactable(name, schema.options)
        refuse_options(name, schema.primary_keys, schema.options, "write")
        has_key = bool(schema.primary_keys)
        CompactionThresholds.of(spec, schema.options, has_primary_key=has_key)

    def expiry(self, now_millis: int, spec: ExpireSnapshotsSpec = TABLES_OWN) -> Expiry:
        """By the options ``snapshot.num-retained.*`` and ``snapshot.time-retained``."""
        options = self.table.schema().options
        now = datetime.fromtimestamp(now_millis / 1000, UTC)
        limits = Limits.of(spec, options, now)
        ids = self.table.snapshots.ids()
        held = held_from(each.snapshot_id for each in self.holds())
        cut = replace(limits, max_deletes=_MOST_EXPIRING)
        oldest_retained = first_retained(ids, _CommitTimes(self.table, ids).millis, cut, held)
        expiring = [each for each in ids if each < oldest_retained]
        is_cut = len(expiring) == _MOST_EXPIRING
        return Expiry(expiring, oldest_retained, limits.texts(options), is_cut)

    def _branch_begin(self, name: str) -> int | None:
        root = child(f"{self.table.location.rstrip('/')}/branch", entry_name("branch", name))
        return next(iter(PaimonSnapshots(root, self.table.storage_options).ids()), None)


@dataclass(frozen=True)
class _CommitTimes:
    """When snapshots of ``table`` were committed; each time that is asked for brings the next."""

    table: PaimonTable
    ids: Sequence[int]
    _known: dict[int, float] = field(default_factory=dict)

    def millis(self, snapshot_id: int) -> float:
        """In milliseconds since 1970; a snapshot that has just been removed is older than all."""
        if snapshot_id not in self._known:
            start = bisect_left(self.ids, snapshot_id)
            few = self.ids[start : start + (_READERS if self._known else 1)]
            with ThreadPoolExecutor(_READERS) as readers:
                self._known.update(zip(few, readers.map(self._read, few), strict=True))
        return self._known[snapshot_id]

    def _read(self, snapshot_id: int) -> float:
        snapshot = self.table.snapshot(snapshot_id)
        if snapshot is None:
            return 0.0
        path = entry_path(self.table.root, "snapshot", snapshot_id)
        stored = modified(path, self.table.storage_options)
        return commit_millis(snapshot.time_millis, stored)


def differing_files(
    table: PaimonTable, before: PaimonSnapshot, after: PaimonSnapshot
) -> list[DifferingFiles]:
    """See ``PageFacts``.

    Raises:
        NotSupportedError: a row of such a table is made of several files.
    """
    schemas = [table.schema(each.schema_id) for each in (before, after)]
    if any(each.primary_keys for each in schemas):
        raise NotSupportedError(
            f"{table.name} has a primary key: its rows are merged from several files.", _REMEDY
        )
    if any(is_on(each, "data-evolution.enabled") for each in schemas):
        raise NotSupportedError(
            f"{table.name} has data evolution: a row's columns are in several files.", _REMEDY
        )
    files = _RowFiles(table, schemas[-1])
    return [files.of(each) for each in table.differing(before, after)]


@dataclass(frozen=True, slots=True)
class _RowFiles:
    """Finds the files of partitions, whose rows are shown with the columns of ``schema``."""

    table: PaimonTable
    schema: TableSchema

    def of(self, partition: DifferingPartition) -> DifferingFiles:
        """The files of one partition."""
        name = partition_name(self.table.partition_values(self.schema, partition.row))
        removed, added = partition.removed, partition.added
        obstacle = self._obstacle(partition, [*removed, *added])
        if obstacle:
            return DifferingFiles(name, (), (), obstacle)
        try:
            folder = self._folder(partition.row)
            gone, come = (
                tuple(_row_file(folder, each) for each in some) for some in (removed, added)
            )
        except NotSupportedError as error:
            return DifferingFiles(name, (), (), error.message)
        except ValueError:
            return DifferingFiles(name, (), (), "A file has an invalid name.")
        return DifferingFiles(name, gone, come, obstacle_of([*gone, *come], self._root))

    @property
    def _root(self) -> str:
        return data_root(self.table.location.rstrip("/"), self.schema.options)

    def _obstacle(self, partition: DifferingPartition, files: Sequence[DataFile]) -> str:
        marks = (partition.old_marks, partition.new_marks)
        keys = {(each.partition, each.bucket, each.name) for each in files}
        if marks[0] != marks[1] or any(keys & each.keys() for each in marks):
            return _MARKED
        if any(each.external_path for each in files):
            return "A file lies outside of the table's folder."
        if not all(self._fits(each.schema_id) for each in files):
            return "A file was written with other columns than the newer snapshot has."
        return ""

    def _fits(self, schema_id: int | None) -> bool:
        if schema_id is None or schema_id == self.schema.schema_id:
            return schema_id is not None
        return self.table.schema(schema_id).columns == self.schema.columns

    def _folder(self, row: bytes) -> tuple[str, str]:
        """The root of the data files and, below it, the folder of a partition.

        Raises:
            NotSupportedError: engines differ in the folder's name.
        """
        pairs = zip(self.schema.partition_keys, self.schema.partition_types, strict=True)
        layout = PartitionLayout.of([_key(*pair) for pair in pairs], self.schema.options)
        return self._root, layout.directory(decoded(row, self.schema.partition_types))


def _row_file(folder: tuple[str, str], file: DataFile) -> RowFile:
    root, partition = folder
    name = file_name(file.name)
    parts = [*bucket_directory("", partition, file.bucket).split("/"), name]
    return RowFile(reduce(child, parts, root), name.rpartition(".")[2], file.size, file.rows)


def _key(name: str, kind: str) -> PartitionKey:
    upper = kind.upper()
    precision = _PRECISION.match(upper)
    single = upper.startswith("FLOAT")
    return PartitionKey(name, int(precision[1]) if precision else None, single=single)
