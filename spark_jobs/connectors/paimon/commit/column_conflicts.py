"""Detects files of columns that others added where a write reads, assigns or marks. Driver only.

Such a file replaces values of rows without removing a file, so that what a write removes, rewrites
or marks may all still be there. After ``RowIdColumnConflictChecker`` of pypaimon.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spark_jobs.connectors.paimon.commit.gap import Gap, OtherCommit
from spark_jobs.connectors.paimon.commit.new_snapshot import Change
from spark_jobs.connectors.paimon.format.manifest_entries import ADD
from spark_jobs.connectors.paimon.library import index_manifest
from spark_jobs.connectors.paimon.read.file_ranges import ranges_of_files
from spark_jobs.connectors.paimon.read.planned_ranges import described_range
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.spi.tables import PlannedFile
from spark_jobs.spi.writes import ReadSet


def written_over(
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


def touched_columns(
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


def is_column_file(table: PinnedTable, entry: Any) -> bool:
    """Whether an added file only holds columns of rows that were there when ``table`` was pinned.

    Files of columns of newer rows are found with those rows.
    """
    if not table.evolves_columns or entry.kind != ADD or table.snapshot is None:
        return False
    first = entry.file.first_row_id
    return first is not None and first < (table.snapshot.next_row_id or 0)


def _column_entries(table: PinnedTable, commit: OtherCommit) -> list[Any]:
    return [entry for entry in commit.entries if is_column_file(table, entry)]


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
