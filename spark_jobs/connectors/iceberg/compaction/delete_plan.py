"""Which position deletes of an Iceberg table are put together. Driver only.

Files of deletes may be about several data files, and a data file may have several: those that hang
together are one part, so that all of its files of deletes can go. Vectors stay: there is one for a
data file already.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from spark_jobs.connectors.iceberg.compaction.part_compactor import DeletesPart, MarkedFile
from spark_jobs.connectors.iceberg.read.planning import named_partition
from spark_jobs.connectors.iceberg.table.manifests import ManifestEntry
from spark_jobs.connectors.iceberg.table.metadata_errors import reading_metadata
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.connectors.iceberg.table.refusals import refuse_file
from spark_jobs.connectors.iceberg.write.table_layout import data_location, folder_of_new_version
from spark_jobs.connectors.shared.compaction.plan import PlannedPart
from spark_jobs.contract.compaction import CompactedPartition
from spark_jobs.contract.request import TableName
from spark_jobs.spi.compaction import WantedPartition

# Positions that one task can hold.
_MOST_ROWS: Final = 20_000_000


def planned_deletes(
    name: TableName, table: PinnedTable, least: int, wanted: WantedPartition
) -> Iterator[PlannedPart]:
    """Parts of data files, one of which has ``least`` files of position deletes or more.

    Raises:
        CatalogError: METADATA_UNREADABLE.
        NotSupportedError: a file that is to be rewritten cannot be read here; gives the reason.
    """
    with reading_metadata(table.place):
        root = table.storage.path(data_location(table))
    current = table.metadata.default_spec_id
    for indexes in _together(table):
        files = [table.lean_files[index] for index in indexes]
        entry = files[0].entry
        is_placed = entry.spec_id == current
        values = named_partition(table, current, entry.partition) if is_placed else {}
        deletes = {each.path: each for file in files for each in file.deletes}
        rows = sum(each.row_count for each in deletes.values())
        if max(len(file.deletes) for file in files) < least or rows > _MOST_ROWS:
            continue
        if not wanted(values):
            continue
        for file in files:
            refuse_file(name, table, file)
        yield PlannedPart(
            tuple(values.values()),
            tuple(indexes),
            _part(table, root, indexes, deletes),
            _expected(len(files), list(deletes.values())),
        )


def _together(table: PinnedTable) -> Iterator[list[int]]:
    """The indexes of data files with common position deletes."""
    leaders: dict[str, str] = {}

    def leader(path: str) -> str:
        while leaders[path] != path:
            leaders[path] = leaders[leaders[path]]
            path = leaders[path]
        return path

    files = enumerate(table.lean_files)
    marked = [index for index, file in files if file.deletes and file.vector is None]
    for index in marked:
        paths = [each.path for each in table.lean_files[index].deletes]
        for path in paths:
            leaders.setdefault(path, path)
            leaders[leader(path)] = leader(paths[0])
    groups: dict[str, list[int]] = defaultdict(list)
    for index in marked:
        groups[leader(table.lean_files[index].deletes[0].path)].append(index)
    yield from groups.values()


def _part(
    table: PinnedTable, root: str, indexes: Sequence[int], deletes: Mapping[str, ManifestEntry]
) -> DeletesPart:
    files = tuple(
        MarkedFile(
            index,
            table.lean_files[index].entry.path,
            table.lean_files[index].entry.row_count,
            folder_of_new_version(root, table.lean_files[index].path),
        )
        for index in indexes
    )
    with reading_metadata(table.place):
        paths = tuple(table.storage.path(path) for path in deletes)
    size = sum(each.size for each in deletes.values())
    return DeletesPart(files, paths, size, table.has_vectors)


def _expected(files: int, deletes: Sequence[ManifestEntry]) -> CompactedPartition:
    size = sum(each.size for each in deletes)
    return CompactedPartition(
        values={},
        files_before=len(deletes),
        files_after=files,
        bytes_before=size,
        bytes_after=size,
        rows=sum(each.row_count for each in deletes),
        vectors_removed=len(deletes),
    )
