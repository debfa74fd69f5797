"""Detects conflicts with commits since the base (rule 12 of docs/semantics.md). Driver only.

Every snapshot after the base has to pass two checks. First, everything that the write removes,
rewrites or marks must still be there, unchanged: otherwise its files no longer fit the table, under
either isolation. Second, the statement must have the same result on the newer snapshot, which is
the case if nothing changed in its read set. The second check ignores compactions, because they
change files, not rows, and does not apply to the isolation ``snapshot``.

In a table with data evolution, a file of columns replaces values of rows without removing a file,
so that what a write removes, rewrites or marks may all still be there: such files are checked too,
after ``RowIdColumnConflictChecker`` of pypaimon.

Records of one key are ordered by their sequence numbers, which a writer takes from the bucket's
files. So under either isolation, a record that was added since then is a conflict: to appended
changes anywhere in the bucket, to rewritten sections within their range of keys.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from spark_jobs.connectors.paimon.commit.history import Gap, OtherCommit
from spark_jobs.connectors.paimon.commit.new_snapshot import Change
from spark_jobs.connectors.paimon.format.manifest_entries import ADD, BucketKey, bucket_key_of
from spark_jobs.connectors.paimon.library import index_manifest
from spark_jobs.connectors.paimon.library.data_files import KeyRange, key_range
from spark_jobs.connectors.paimon.library.index_manifest import IndexFile, is_hash_index
from spark_jobs.connectors.paimon.read.file_ranges import ranges_of_files
from spark_jobs.connectors.paimon.read.planning import described_files, described_range
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.connectors.shared.commit.refusals import CHANGED_FILES, READ_ROWS, conflict
from spark_jobs.contract.partition_names import partition_name
from spark_jobs.errors import CommitError
from spark_jobs.spi.tables import PlannedFile
from spark_jobs.spi.writes import MergeWrite, ReadSet

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
        for commit, entries in _overtaking(gap, change):
            raise _conflict(table, commit, entries, "records of keys that the statement writes")
        for commit, entries in _reindexing(gap, change):
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
        added = [entry for entry in commit.entries if not _is_column_file(table, entry)]
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
    for commit, entries in _written_over(table, gap, change, read):
        raise _conflict(table, commit, entries, "columns of rows that the statement changes")
    if write.isolation == "snapshot":
        return
    for commit, entries in _touched_columns(table, gap, write.read_set, read):
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


def _written_over(
    table: PinnedTable, gap: Gap, change: Change, read_columns: frozenset[str]
) -> Iterator[tuple[OtherCommit, list[Any]]]:
    """The commits in ``gap`` that wrote to ranges what ``change`` writes there, or depends on.

    That is, under either isolation: a column that it assigns to the same range; anything to a range
    that it removes; one of ``read_columns`` to a range of which it marks rows.
    """
    ranges = _changed_ranges(table, change, read_columns)
    for commit in gap.commits:
        conflicting = []
        for entry in _column_entries(table, commit):
            columns = ranges.get(entry.file.first_row_id)
            if columns is not None and columns & {*table.columns.file_columns.held(entry)}:
                conflicting.append(entry)
        if conflicting:
            yield commit, conflicting


def needed_files(table: PinnedTable, change: Change) -> list[Any]:
    """The entries of all files of the ranges whose columns ``change`` assigns."""
    first_ids = {e.file.first_row_id for e in change.entries if _is_of_columns(e)}
    return [e for _, e in table.files.located_entries if e.file.first_row_id in first_ids]


def _touched_columns(
    table: PinnedTable, gap: Gap, read_set: ReadSet, columns: frozenset[str]
) -> Iterator[tuple[OtherCommit, list[Any]]]:
    """The commits in ``gap`` that wrote one of ``columns`` where a statement may have read it.

    What rows have now counts as well as what they had before.
    """
    known: dict[int, list[Any]] = {}
    for ordinal in range(len(table.files.units)):
        entries = table.files.unit_entries(ordinal)
        known[entries[0].file.first_row_id] = entries
    for commit in gap.commits:
        written = {id(entry) for entry in _column_entries(table, commit)}
        gone = {entry.file.file_name for entry in commit.entries if entry.kind != ADD}
        for first in {e.file.first_row_id for e in commit.entries if e.kind != ADD}:
            known[first] = [e for e in known.get(first, []) if e.file.file_name not in gone]
        touching = []
        for entry in commit.entries:
            if entry.kind != ADD:
                continue
            before = known.get(entry.file.first_row_id, [])
            known[entry.file.first_row_id] = [*before, entry]
            if id(entry) not in written or commit.keeps_rows:
                continue
            held = table.columns.file_columns.held(entry)
            is_read = not columns.isdisjoint(held)
            if is_read and read_set(_described(table, [before, [*before, entry]])):
                touching.append(entry)
        if touching:
            yield commit, touching


def _is_column_file(table: PinnedTable, entry: Any) -> bool:
    """Whether an added file only holds columns of rows that were there when ``table`` was pinned.

    Files of columns of newer rows are found with those rows.
    """
    if not table.evolves_columns or entry.kind != ADD or table.snapshot is None:
        return False
    first = entry.file.first_row_id
    return first is not None and first < (table.snapshot.next_row_id or 0)


def _column_entries(table: PinnedTable, commit: OtherCommit) -> list[Any]:
    return [entry for entry in commit.entries if _is_column_file(table, entry)]


def _changed_ranges(
    table: PinnedTable, change: Change, read_columns: frozenset[str]
) -> Mapping[int, set[str]]:
    """By first row id: the columns that nobody else may have written."""
    ranges: dict[int, set[str]] = {}
    everything = {column.name for column in table.schema.columns}
    names = {n for index in change.index_adds for n in index_manifest.marked_files(index)}
    for entry in change.entries:
        if entry.kind != ADD:
            ranges.setdefault(entry.file.first_row_id, set()).update(everything)
        elif _is_of_columns(entry):
            held = table.columns.file_columns.held(entry)
            ranges.setdefault(entry.file.first_row_id, set()).update(held)
    for _, entry in table.files.located_entries:
        if entry.file.file_name in names:
            ranges.setdefault(entry.file.first_row_id, set()).update(read_columns)
    return ranges


def _is_of_columns(entry: Any) -> bool:
    """Whether the change adds columns of rows that have ids already."""
    return bool(entry.kind == ADD and entry.file.first_row_id is not None)


def _described(table: PinnedTable, ranges: Sequence[Sequence[Any]]) -> list[PlannedFile]:
    ranges_of = ranges_of_files(table, [entry for entries in ranges for entry in entries])
    return [
        described_range(table, entries, ordinal, ranges_of)
        for ordinal, entries in enumerate(ranges)
        if entries
    ]


def _overtaking(gap: Gap, change: Change) -> Iterator[tuple[OtherCommit, list[Any]]]:
    """The commits in ``gap`` that conflict with ``change``, and their entries that do.

    A compaction keeps records and their numbers, so that it conflicts only if its files overlap
    with rewritten ones. Files of another number of buckets, or that wait for their bucket, may have
    keys of any bucket.
    """
    appended: set[BucketKey] = set()
    rewritten: dict[BucketKey, list[KeyRange]] = defaultdict(list)
    for entry in change.entries:
        place = bucket_key_of(entry)
        if entry.kind == ADD and entry.file.level == 0:
            appended.add(place)
        else:
            rewritten[place].append(key_range(entry))
    counts = {bucket_key_of(e).partition: e.total_buckets for e in change.entries}
    for commit in gap.commits:
        added = [entry for entry in commit.entries if entry.kind == ADD]
        conflicting = [
            entry
            for entry in added
            if (bucket_key_of(entry) in appended and not commit.keeps_rows)
            or _has_other_buckets(entry, counts)
            or any(each.overlaps(key_range(entry)) for each in rewritten[bucket_key_of(entry)])
        ]
        if conflicting:
            yield commit, conflicting


def _has_other_buckets(entry: Any, counts: Mapping[tuple[Any, ...], int]) -> bool:
    count = entry.total_buckets
    return bool(counts.get(bucket_key_of(entry).partition, count) != count)


def _reindexing(gap: Gap, change: Change) -> Iterator[tuple[OtherCommit, list[Any]]]:
    """The commits in ``gap`` that changed the HASH index of a partition that ``change`` extends.

    They may have put a key into another bucket than the statement does.
    """
    indexes = (*change.index_adds, *change.index_deletes)
    extended = {bucket_key_of(each).partition for each in indexes if is_hash_index(each)}
    for commit in gap.commits:
        conflicting = [
            entry
            for entry in commit.reindexed
            if is_hash_index(entry) and bucket_key_of(entry).partition in extended
        ]
        if conflicting:
            yield commit, conflicting
