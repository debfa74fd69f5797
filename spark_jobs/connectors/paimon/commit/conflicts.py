"""Detects conflicts with commits since the base (rule 12 of docs/semantics.md). Driver only.

Every snapshot after the base has to pass two checks. First, everything that the write removes,
rewrites or marks must still be there, unchanged: otherwise its files no longer fit the table, under
either isolation. Second, the statement must have the same result on the newer snapshot, which is
the case if nothing changed in its read set. The second check ignores compactions, because they
change files, not rows, and does not apply to the isolation ``snapshot``. In a table with data
evolution, files of columns are checked too (``column_conflicts``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from spark_jobs.connectors.paimon.commit.column_conflicts import (
    is_column_file,
    needed_files,
    touched_columns,
    written_over,
)
from spark_jobs.connectors.paimon.commit.gap import Gap, OtherCommit
from spark_jobs.connectors.paimon.commit.new_snapshot import Change
from spark_jobs.connectors.paimon.commit.overtaking import overtaking, reindexing
from spark_jobs.connectors.paimon.format.manifest_entries import ADD
from spark_jobs.connectors.paimon.format.sequence_numbers import bucket_key_of
from spark_jobs.connectors.paimon.library import index_manifest
from spark_jobs.connectors.paimon.library.index_manifest import IndexFile
from spark_jobs.connectors.paimon.read.planning import described_files
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.connectors.shared.commit.refusals import CHANGED_FILES, READ_ROWS, conflict
from spark_jobs.contract.partition_names import partition_name
from spark_jobs.errors import CommitError
from spark_jobs.spi.writes import MergeWrite

_SHOWN: Final = 5


def refuse_conflicts(
    table: PinnedTable,
    gap: Gap,
    change: Change,
    index_files: Sequence[IndexFile],
    write: MergeWrite,
) -> None:
    """Refuse to publish ``change`` after ``gap``; it was made for the snapshot of ``table``.

    ``index_files`` are those that it was made for: the snapshot's, or later ones.

    Raises:
        CommitError: COMMIT_CONFLICT; names the conflicting snapshot and its partitions.
    """
    _refuse_lost_files(table, gap, change, index_files)
    _refuse_global_indexes(table, gap)
    if table.keyed is not None:
        for commit, entries in overtaking(gap, change):
            raise _conflict(table, commit, entries, "records of keys that the statement writes")
        for commit, entries in reindexing(gap, change):
            raise _conflict(table, commit, entries, "the HASH index that the statement extends")
    if table.evolves_columns:
        _refuse_written_columns(table, gap, change, write)
    if write.isolation == "snapshot":
        return
    known = {entry.file.file_name: entry for _, entry in table.files.located_entries}
    known |= {entry.file.file_name: entry for entry in gap.added}
    for commit in gap.commits:
        if commit.keeps_rows:
            continue
        added = [entry for entry in commit.entries if not is_column_file(table, entry)]
        entries = [*added, *_remarked(table, known, commit)]
        described = described_files(table, entries)
        touched = [entries[file.ordinal] for file in write.read_set(described)]
        if touched:
            raise _conflict(table, commit, touched, READ_ROWS)


def _remarked(table: PinnedTable, known: Mapping[str, Any], commit: OtherCommit) -> list[Any]:
    """The entries of the files whose rows a commit marked; of ranges, all that hold columns."""
    remarked = [known[name] for name in commit.remarked if name in known]
    if not table.evolves_columns:
        return remarked
    first_ids = {entry.file.first_row_id for entry in remarked}
    return [entry for entry in known.values() if entry.file.first_row_id in first_ids]


def _refuse_written_columns(
    table: PinnedTable, gap: Gap, change: Change, write: MergeWrite
) -> None:
    """Check that nobody wrote columns that the change assigns, removes or depends on."""
    every = frozenset(column.name for column in table.schema.columns)
    read = every if write.read_columns is None else write.read_columns
    for commit, entries in written_over(table, gap, change, read):
        raise _conflict(table, commit, entries, "columns of rows that the statement changes")
    if write.isolation == "snapshot":
        return
    for commit, entries in touched_columns(table, gap, write.read_set, read):
        raise _conflict(table, commit, entries, "columns that the statement read")


def _refuse_lost_files(
    table: PinnedTable, gap: Gap, change: Change, index_files: Sequence[IndexFile]
) -> None:
    """Check that everything that the change removes, rewrites or marks is there, unchanged."""
    needed = {e.file.file_name: e for e in change.entries if e.kind != ADD}
    by_name = {entry.file.file_name: entry for _, entry in table.files.located_entries}
    marked = (name for index in change.index_adds for name in index_manifest.marked_files(index))
    needed |= {name: by_name[name] for name in marked if name in by_name}
    if table.evolves_columns:
        needed |= {e.file.file_name: e for e in needed_files(table, change)}
    for commit in gap.commits:
        lost = [needed[name] for name in commit.unsettled if name in needed]
        if lost:
            raise _conflict(table, commit, lost, CHANGED_FILES)
    now = _indexes_of(table, change, gap.index_files)
    differing = now ^ _indexes_of(table, change, index_files)
    for commit in gap.commits:
        moved = [e for e in commit.reindexed if index_manifest.index_name(e) in differing]
        if moved:
            raise _conflict(table, commit, moved, "deletion vectors that the statement rewrites")


def _refuse_global_indexes(table: PinnedTable, gap: Gap) -> None:
    """Check that nobody built an index that the statement leaves as it is, beside other values."""
    for commit in gap.commits:
        built = [each for each in commit.reindexed if index_manifest.is_global_index(each)]
        if built:
            raise _conflict(table, commit, built, "an index that the statement would not keep")


def _indexes_of(
    table: PinnedTable, change: Change, index_files: Sequence[IndexFile]
) -> frozenset[str]:
    """The index files that the change deletes, and all those of fixed buckets that it changes."""
    deleted = {index_manifest.index_name(each) for each in change.index_deletes}
    places = {bucket_key_of(each) for each in (*change.index_adds, *change.index_deletes)}
    return frozenset(
        index_manifest.index_name(file.entry)
        for file in index_files
        if index_manifest.index_name(file.entry) in deleted
        or (table.bucketing.matters and bucket_key_of(file.entry) in places)
    )


def _conflict(
    table: PinnedTable, commit: OtherCommit, entries: Sequence[Any], what: str
) -> CommitError:
    keys = table.schema.partition_keys
    partitions = sorted({partition_name(entry.partition.to_dict()) for entry in entries})
    shown = ", ".join(partitions[:_SHOWN]) + (", ..." if len(partitions) > _SHOWN else "")
    where = f" in partitions {shown}" if keys else ""
    return conflict(commit, what, where)
