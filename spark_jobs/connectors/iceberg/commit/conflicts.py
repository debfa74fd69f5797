"""Detects conflicts with commits since the base (rule 12 of docs/semantics.md). Driver only.

Everything that the write removes must still be there, without new deletes, under either isolation.
Deletes by value count if a row has the value: in a changed file, or among the new rows of a
statement that may have read such rows. Under ``serializable``, nothing in the statement's read set
may have changed; compactions do not count, because they change files, not rows.

A file that replaces an older one is newer than deletes that were committed meanwhile: these would
not apply to its rows any more. And who inserts a row because there was none of its key must not do
so beside a writer that has stored one, which deletes the key before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Final

import numpy as np

from spark_jobs.connectors.iceberg.commit.changes import Changes
from spark_jobs.connectors.iceberg.commit.history import Gap
from spark_jobs.connectors.iceberg.commit.manifest_records import NewDataFile
from spark_jobs.connectors.iceberg.format.deletes import DeletedRows
from spark_jobs.connectors.iceberg.format.equality import KeyFiles
from spark_jobs.connectors.iceberg.format.transforms import unscaled
from spark_jobs.connectors.iceberg.format.values import big_endian
from spark_jobs.connectors.iceberg.read.planning import described_files
from spark_jobs.connectors.iceberg.read.scanned_files import scanned
from spark_jobs.connectors.iceberg.table.commits import OtherCommit, summary_of
from spark_jobs.connectors.iceberg.table.live_files import LiveFile, may_apply
from spark_jobs.connectors.iceberg.table.manifests import ADDED, DATA, ManifestEntry
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.connectors.iceberg.write.table_layout import isolation, statement_of
from spark_jobs.connectors.shared.commit import refusals
from spark_jobs.contract.request import TableName
from spark_jobs.datafiles.file_changes import Positions
from spark_jobs.spi.writes import MergeWrite

# What the first commit to a table of version 3 changes.
_CHANGED_IDS: Final = "the ids of rows that the statement stores again"
_NONE: Final[Positions] = np.zeros(0, dtype=np.int64)


def refuse_conflicts(gap: Gap, keys: KeyConflicts, write: MergeWrite) -> None:
    """Refuse to publish the changes of ``keys``, made for the snapshot of its table, after ``gap``.

    Raises:
        CommitError: COMMIT_CONFLICT; names the conflicting snapshot.
    """
    table, changes = keys.table, keys.changes
    known = {each.entry.path: each.entry for each in table.files}
    if changes.touched and gap.commits and may_have_got_ids(table):
        raise refusals.conflict(gap.commits[0], _CHANGED_IDS)
    is_serializable = (write.isolation or isolation(table, statement_of(write))) == "serializable"
    for commit in gap.commits:
        refusals.refuse_own_commit(
            commit.snapshot.snapshot_id, commit.operation_id, write.operation
        )
        refusals.refuse_moved_mark(
            commit.snapshot.snapshot_id, summary_of(commit.snapshot), write.operation
        )
        lost = [each for each in commit.removed if each.key in changes.removed]
        gone = {each.key for each in commit.removed} & {each.key for each in changes.touched}
        deleted = commit.equality_deletes
        if lost or gone or _with_new_deletes(table, commit, changes.touched):
            raise refusals.conflict(commit, refusals.CHANGED_FILES)
        if deleted:
            may_have_read = bool(write.read_set(described_files(table, deleted)))
            if keys.found(commit, among_added=may_have_read):
                raise refusals.conflict(commit, refusals.CHANGED_FILES)
        if is_serializable and not _keeps_rows(commit, known):
            touched = [*commit.data_files, *deleted]
            touched += _with_new_deletes(table, commit, known.values())
            if write.read_set(described_files(table, touched)):
                raise refusals.conflict(commit, refusals.READ_ROWS)
        known |= {each.path: each for each in commit.added if each.content == DATA}


def may_have_got_ids(table: PinnedTable) -> bool:
    """Whether rows of a base without ids get ids by any later commit: those must not be lost."""
    return table.has_vectors and not table.has_lineage


def _keeps_rows(commit: OtherCommit, known: Mapping[str, ManifestEntry]) -> bool:
    """Whether a compaction only moved rows; its delete files are then of files that it wrote."""
    return commit.keeps_rows and not any(
        each.record.get("referenced_data_file") in known for each in commit.position_deletes
    )


def _with_new_deletes(
    table: PinnedTable, commit: OtherCommit, files: Iterable[ManifestEntry]
) -> Sequence[ManifestEntry]:
    """The files to which position deletes of the commit may apply."""
    if not commit.position_deletes:
        return ()
    everywhere = table.unpartitioned
    return [
        file
        for file in files
        if any(may_apply(delete, file, everywhere) for delete in commit.position_deletes)
    ]


@dataclass(frozen=True, slots=True)
class KeyConflicts:
    """Compares keys with rows of the ``changes`` to the base ``table``, called ``name``.

    ``_harmless`` are the snapshots whose keys have been compared: a later attempt skips them.
    """

    name: TableName
    table: PinnedTable
    changes: Changes
    _harmless: set[int] = field(default_factory=set)

    def found(self, commit: OtherCommit, *, among_added: bool) -> bool:
        """Whether a key is that of a row in a changed file; ``among_added``: or of an added row.

        Raises:
            CatalogError: DATA_FILE_UNREADABLE, METADATA_UNREADABLE.
            NotSupportedError: deletes cannot be read here; gives the reason.
        """
        if commit.snapshot.snapshot_id in self._harmless:
            return False
        paths = {each.path for each in self.changes.touched}
        files = [each for each in self.table.files if each.entry.path in paths]
        if among_added:
            files += (self._added(each) for each in self.changes.added)
        if any(self._hit(files, commit.equality_deletes)):
            return True
        self._harmless.add(commit.snapshot.snapshot_id)
        return False

    def _hit(self, files: Iterable[LiveFile], deletes: Sequence[ManifestEntry]) -> Iterator[bool]:
        """For each file with a row that has one of the keys, whether such a row is live."""
        filesystem = self.table.storage.filesystem
        known, keys = DeletedRows(filesystem), KeyFiles(filesystem)
        everywhere = self.table.unpartitioned
        for file in files:
            new = tuple(each for each in deletes if may_apply(each, file.entry, everywhere))
            wanted = scanned(self.table, self.name, 0, replace(file, equality_deletes=new)).deletes
            if wanted.by_value is None:
                continue
            hit = keys.positions(wanted.by_value, wanted.row_count, _NONE)
            if len(hit):
                gone = known.positions(scanned(self.table, self.name, 0, file).deletes)
                yield not np.isin(hit, gone).all()

    def _added(self, file: NewDataFile) -> LiveFile:
        """A new file as if it were in a manifest."""
        partition = {
            key: big_endian(unscaled(value)) if isinstance(value, Decimal) else value
            for key, value in file.partition.items()
        }
        entry = ManifestEntry(ADDED, None, 0, None, file.spec_id, partition, file.record, "")
        return LiveFile(entry, self.table.storage.path(entry.path))
