"""The data files of a pinned snapshot, with partition values and column statistics. Driver only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from spark_jobs.connectors.paimon.read.file_ranges import ranges_of_files
from spark_jobs.connectors.paimon.read.planned_ranges import planned_ranges
from spark_jobs.connectors.paimon.read.planned_sections import described_records, planned_sections
from spark_jobs.connectors.paimon.table.evolution_refusals import refuse_vectors_of_columns
from spark_jobs.connectors.paimon.table.file_refusals import refuse_file, refuse_indexes
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi.tables import PlannedFile, TableHandle


def plan_files(handle: TableHandle) -> tuple[PlannedFile, ...]:
    """All data files, ordered by path, or all sections or ranges; the index is the ordinal.

    Raises:
        NotSupportedError: a file cannot be read correctly here; gives the reason.
        ValueError: a deletion vector deletes more rows than its file has.
    """
    table = pinned_table(handle)
    refuse_indexes(table, handle.name)
    for _, entry in table.files.located_entries:
        refuse_file(table, handle.name, entry)
    _require_unique_names(handle, table.files.located_entries)
    if table.keyed is not None:
        return planned_sections(table, table.keyed)
    if table.evolves_columns:
        refuse_vectors_of_columns(table, handle.name)
        return planned_ranges(table)
    return _described(table, table.files.located_entries)


def described_files(table: PinnedTable, entries: Sequence[Any]) -> tuple[PlannedFile, ...]:
    """Files of later snapshots, only for their partitions and statistics.

    In a table with a primary key, their records change rows whose other columns are unknown.
    """
    if table.keyed is not None:
        keyed = table.keyed
        return tuple(described_records(table, keyed, e, n) for n, e in enumerate(entries))
    return _described(table, [(entry.file.file_name, entry) for entry in entries])


def _described(table: PinnedTable, located: Sequence[tuple[str, Any]]) -> tuple[PlannedFile, ...]:
    ranges_of = ranges_of_files(table, [entry for _, entry in located])
    return tuple(
        PlannedFile(
            ordinal=ordinal,
            path=path,
            partition=entry.partition.to_dict(),
            row_count=entry.file.row_count,
            size=entry.file.file_size,
            ranges=ranges_of(entry),
            deleted_row_count=table.files.deleted_row_count(entry.file),
        )
        for ordinal, (path, entry) in enumerate(located)
    )


def _require_unique_names(handle: TableHandle, located: tuple[tuple[str, Any], ...]) -> None:
    counts = Counter(entry.file.file_name for _, entry in located)
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        raise NotSupportedError(
            f"{handle.name} has several data files of the name {repeated[0]}.",
            "Compact the table fully with Paimon's own engines first.",
        )
