"""Taking back what a run committed to a table, by one snapshot. Driver only."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.commit.history import COMMIT_IDENTIFIER, find_commit
from spark_jobs.connectors.paimon.commit.new_snapshot import Change, Commit
from spark_jobs.connectors.paimon.commit.publish import SnapshotStore, publish_snapshot
from spark_jobs.connectors.paimon.format.manifest_entries import ADD, BucketKey, bucket_key_of
from spark_jobs.connectors.paimon.format.vectors import VectorLocation, copied_index
from spark_jobs.connectors.paimon.library import index_manifest, manifest_files
from spark_jobs.connectors.paimon.maintenance.undo_plan import (
    RestoredFile,
    UndoPlan,
    planned,
    vector_files,
)
from spark_jobs.connectors.paimon.metadata import PaimonMetadata
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.connectors.paimon.write.table_layout import NamePrefixes
from spark_jobs.connectors.shared.commit.commit_loop import before_publication, until_committed
from spark_jobs.connectors.shared.maintenance.undo import (
    base_report,
    files_expired,
    recorded_properties,
)
from spark_jobs.contract.properties import OPERATION_ID
from spark_jobs.contract.request import TableName
from spark_jobs.contract.undo import TableUndo
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.undo import Undoing
from spark_jobs.storage.files import copy_files, in_parallel, remove_file


@dataclass(frozen=True, slots=True)
class PaimonUndo:
    """Implements ``ConnectorUndo``."""

    metadata: PaimonMetadata
    filesystem: pafs.FileSystem
    store: SnapshotStore

    def earlier(self, name: TableName, undoing: Undoing) -> TableUndo | None:
        """What an earlier try of the operation did to the table."""
        table = self.metadata.load_table(name)
        committed = find_commit(self.filesystem, table, undoing.properties[OPERATION_ID])
        if committed is None:
            return None
        return TableUndo(str(name), "undone", snapshot_id=committed.snapshot_id)

    def planned(self, name: TableName, undoing: Undoing) -> TableUndo:
        """What would be done; nothing is stored."""
        return _report(name, self._plan(name, undoing))

    def undone(self, name: TableName, undoing: Undoing) -> TableUndo:
        """Take back what the run committed."""
        files = RestoredFiles(self.filesystem, name)
        try:
            return until_committed(lambda _number: self._attempt(name, undoing, files))
        except JobError as error:
            if error.code is not ErrorCode.COMMIT_OUTCOME_UNKNOWN:
                files.discard()
            raise

    def _attempt(self, name: TableName, undoing: Undoing, files: RestoredFiles) -> TableUndo | None:
        """The report; None if another writer was faster."""
        plan = self._plan(name, undoing)
        report, table = _report(name, plan), plan.table
        undoing.require_approved(report)
        if report.outcome == "unchanged":
            return report
        with before_publication():
            change = files.change(plan)
        base = None if table.snapshot is None else int(table.snapshot.id)
        recorded = recorded_properties(name, undoing, plan.commits, base)
        commit = Commit(undoing.properties[OPERATION_ID], COMMIT_IDENTIFIER, recorded)
        done = publish_snapshot(self.store, table, change, commit, undoing.require_wanted)
        return None if done is None else replace(report, outcome="undone", snapshot_id=done)

    def _plan(self, name: TableName, undoing: Undoing) -> UndoPlan:
        handle = self.metadata.load_table(name)
        plan = planned(name, pinned_table(handle), undoing)
        if not plan.is_empty:
            self.metadata.require_writable(handle)
            self._require_files(name, plan)
        return plan

    def _require_files(self, name: TableName, plan: UndoPlan) -> None:
        """Check that all files that must come back are there."""
        vectors = [each.vector for each in plan.back] + list(plan.marks.values())
        needed = [each.path for each in plan.back]
        needed += sorted({each.path for each in vectors if each is not None})
        found = in_parallel(lambda path: self.filesystem.get_file_info(path).is_file, needed)
        for path, is_there in zip(needed, found, strict=True):
            if not is_there:
                raise files_expired(name, path)


def _report(name: TableName, plan: UndoPlan) -> TableUndo:
    oldest = plan.history[-1] if plan.history else None
    is_whole = oldest is None or oldest.snapshot_id == 1
    report = base_report(name, plan.commits, oldest, is_whole)
    vectors = [each.vector for each in plan.back if each.vector is not None]
    vectors += [each for each in plan.marks.values() if each is not None]
    copied = sum(each.entry.file.file_size for each in plan.back)
    return replace(
        report,
        outcome="unchanged" if plan.is_empty else report.outcome,
        files_removed=len(plan.gone),
        files_restored=len(plan.back),
        deletes_restored=len(plan.marks),
        bytes_copied=copied + sum(each.length for each in vectors),
    )


class RestoredFiles:
    """Writes the files of an undo; copies once, files of vectors for each attempt to publish."""

    def __init__(self, filesystem: pafs.FileSystem, name: TableName) -> None:
        self._filesystem = filesystem
        self._name = name
        self._token = str(uuid.uuid4())
        self._numbers = count()
        self._copies: dict[str, tuple[str, Any]] = {}
        self._indexes: list[str] = []

    def change(self, plan: UndoPlan) -> Change:
        """The change of a plan, whose files are written.

        Raises:
            CommitError: COMMIT_HISTORY_EXPIRED: a file is gone.
            OSError: the storage refused.
        """
        table = plan.table
        self._remove_indexes()
        try:
            self._copy(table, [each for each in plan.back if each.path not in self._copies])
            copies = {each.path: self._copies[each.path][1] for each in plan.back}
            adds, deletes = self._index_changes(plan, copies)
        except FileNotFoundError as error:
            raise files_expired(self._name, str(error.filename or error)) from error
        entries = [*map(manifest_files.removed_entry, plan.gone), *copies.values()]
        return Change(
            entries=sorted(entries, key=lambda entry: repr(bucket_key_of(entry))),
            index_adds=adds,
            index_deletes=deletes,
            overwrites=True,
        )

    def discard(self) -> None:
        """Remove all files; nothing of them was published."""
        self._remove_indexes()
        for path, _ in self._copies.values():
            remove_file(self._filesystem, path)
        self._copies.clear()

    def _copy(self, table: PinnedTable, files: list[RestoredFile]) -> None:
        prefix, pairs = NamePrefixes.of(table, self._token).data, []
        for restored in files:
            folder, _, old = restored.path.rpartition("/")
            name = f"{prefix}{next(self._numbers)}{old[old.index('.') :]}"
            path = f"{folder}/{name}"
            external = restored.entry.file.external_path
            beside = None if external is None else f"{external.rpartition('/')[0]}/{name}"
            file = replace(
                restored.entry.file, file_name=name, external_path=beside, file_path=path
            )
            pairs.append((restored.path, path))
            self._copies[restored.path] = path, replace(restored.entry, kind=ADD, file=file)
        copy_files(self._filesystem, pairs)

    def _index_changes(
        self, plan: UndoPlan, copies: Mapping[str, Any]
    ) -> tuple[list[Any], list[Any]]:
        """The new index manifest entries, and those that go.

        In a bucket that matters, one file has all vectors: Paimon's Java writers keep only one
        (``IndexManifestFileHandler.BucketedCombiner``).
        """
        table = plan.table
        wanted: dict[BucketKey, dict[str, VectorLocation | None]] = defaultdict(dict)
        partitions: dict[BucketKey, Any] = {}
        for entry in plan.gone:
            self._want(wanted, partitions, entry, entry.file.file_name, None)
        for restored in plan.back:
            entry = copies[restored.path]
            if restored.vector is not None:
                self._want(wanted, partitions, entry, entry.file.file_name, restored.vector)
        live = {entry.file.file_name: entry for _, entry in table.files.located_entries}
        for name, vector in plan.marks.items():
            self._want(wanted, partitions, live[name], name, vector)
        adds, deletes = list[Any](), list[Any]()
        for place, vectors in sorted(wanted.items(), key=lambda each: repr(each[0])):
            replaced = [
                file
                for file in vector_files(table, place)
                if table.bucketing.matters or vectors.keys() & file.vectors.keys()
            ]
            new = {n: v for n, v in vectors.items() if v is not None}
            if not new and not any(vectors.keys() & file.vectors.keys() for file in replaced):
                continue
            names = [n for file in replaced for n in file.vectors if n not in vectors]
            new |= {n: table.files.vectors[n] for n in names}
            deletes += [index_manifest.removed_index(file.entry) for file in replaced]
            if new:
                path = self._new_index(table, place)
                size, ranges = copied_index(self._filesystem, path, new)
                adds.append(
                    index_manifest.new_vector_index(
                        partitions[place], place.bucket, path, size, ranges
                    )
                )
        return adds, deletes

    @staticmethod
    def _want(
        wanted: dict[BucketKey, dict[str, VectorLocation | None]],
        partitions: dict[BucketKey, Any],
        entry: Any,
        name: str,
        vector: VectorLocation | None,
    ) -> None:
        place = bucket_key_of(entry)
        wanted[place][name] = vector
        partitions[place] = entry.partition

    def _new_index(self, table: PinnedTable, place: BucketKey) -> str:
        folder = index_manifest.index_directory(table.table) or table.files.bucket_directory(place)
        prefix = NamePrefixes.of(table, self._token).indexes
        path = f"{folder}/{prefix}{next(self._numbers)}"
        self._indexes.append(path)
        return path

    def _remove_indexes(self) -> None:
        for path in self._indexes:
            remove_file(self._filesystem, path)
        self._indexes.clear()
