"""Which files of an Iceberg table are put together. Driver only.

Follows Iceberg's ``BinPackRewriteFilePlanner``: the small files of a partition, and files of whose
rows many are deleted. As there, the files of older partition specs are one group, whose rows go to
partitions of the current one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from spark_jobs.connectors.iceberg.compaction.part_compactor import FileOrder, IcebergPart, PartFile
from spark_jobs.connectors.iceberg.format.file_columns import Constants
from spark_jobs.connectors.iceberg.format.schema import arrow_type
from spark_jobs.connectors.iceberg.read.planning import named_partition
from spark_jobs.connectors.iceberg.read.scanned_files import row_lineage, scanned
from spark_jobs.connectors.iceberg.table.live_files import PartitionKey, partition_key
from spark_jobs.connectors.iceberg.table.manifests import ManifestEntry
from spark_jobs.connectors.iceberg.table.metadata_errors import reading_metadata
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable, pinned_table
from spark_jobs.connectors.iceberg.write.table_layout import (
    begins_with_order,
    data_location,
    folder_of_new_version,
    row_order,
)
from spark_jobs.connectors.shared.compaction.bins import (
    BucketFile,
    Files,
    FileSizes,
    all_in_bins,
    settled_bins,
)
from spark_jobs.connectors.shared.compaction.plan import PlannedPart, asked_order, asked_terms
from spark_jobs.contract.compaction import CompactedPartition, CompactSpec
from spark_jobs.contract.request import TableName
from spark_jobs.formats.iceberg.compaction import CompactionThresholds
from spark_jobs.spi.compaction import WantedPartition
from spark_jobs.spi.tables import TableHandle


@dataclass(frozen=True, slots=True)
class CompactionOptions(FileSizes):
    """The options of one compaction; ``deleted_share`` is from 0 to 1, as in ``CompactSpec``.

    ``order`` is that of new files; ``is_asked``: not because the table has it.
    """

    deleted_share: float
    order: FileOrder | None
    is_asked: bool

    @classmethod
    def of(cls, handle: TableHandle, spec: CompactSpec) -> CompactionOptions:
        """What ``spec`` asks for; where it does not, the table's property or Iceberg's defaults.

        Raises:
            NotSupportedError: the table's property has an invalid value.
            AnalysisError: COLUMN_NOT_FOUND, TYPE_MISMATCH: the order that is asked for.
        """
        table = pinned_table(handle)
        thresholds = CompactionThresholds.of(spec, table.metadata.properties)
        return cls(
            mode=spec.mode,
            target_file_size=thresholds.target_file_size,
            min_files=thresholds.min_files,
            small_file_share=thresholds.small_file_share,
            deleted_share=thresholds.deleted_share,
            order=file_order(handle, spec),
            is_asked=spec.asked_order is not None,
        )

    def is_ordered(self, entry: ManifestEntry) -> bool:
        """Whether a file says that it is in the order of new files."""
        recorded = entry.record.get("sort_order_id")
        return self.order is None or (self.order.id != 0 and recorded == self.order.id)


def file_order(handle: TableHandle, spec: CompactSpec) -> FileOrder | None:
    """The order that is asked for, or else the table's; None if there is neither.

    Raises:
        AnalysisError: COLUMN_NOT_FOUND, TYPE_MISMATCH.
    """
    table = pinned_table(handle)
    of_table, id_of_table = row_order(table), table.metadata.default_sort_order_id
    schema = pa.schema([(each.name, arrow_type(each.type)) for each in table.columns])
    asked = asked_order(handle, spec, schema)
    if asked is None:
        return None if of_table is None else FileOrder(of_table, id_of_table)
    is_of_table = bool(spec.sort_by) and begins_with_order(table, asked_terms(handle, spec))
    return FileOrder(asked, id_of_table if is_of_table else 0)


def planned_parts(
    name: TableName, table: PinnedTable, options: CompactionOptions, wanted: WantedPartition
) -> Iterator[PlannedPart]:
    """The parts of the table's plan; each becomes one file, several in order, or none.

    Raises:
        CatalogError: METADATA_UNREADABLE.
        NotSupportedError: a file that is to be rewritten cannot be read here; gives the reason.
    """
    with reading_metadata(table.place):
        root = table.storage.path(data_location(table))
    for values, indexes in _partitions(table):
        if not wanted(values):
            continue
        files = [_file(table, index, options) for index in indexes]
        if _is_moved(table, files[0]):
            bins = _moved_bins(table, files, options)
        elif options.is_asked and options.is_full:
            bins = all_in_bins(files, options)
        else:
            bins = settled_bins([file for file in files if file.is_candidate], options)
        for each in bins:
            yield _part(name, table, root, values, each, options)


def _is_moved(table: PinnedTable, file: BucketFile) -> bool:
    """Whether the rows of a file go to partitions of the current spec."""
    current = table.metadata.default_spec_id
    is_older = table.lean_files[file.index].entry.spec_id != current
    return is_older and current not in table.unpartitioned


def _partitions(table: PinnedTable) -> Iterator[tuple[Mapping[str, Any], list[int]]]:
    """The values of each partition of the current spec, and the indexes of its files.

    Those of older specs are in none, and have no values.
    """
    current = table.metadata.default_spec_id
    by_key: dict[PartitionKey | None, list[int]] = defaultdict(list)
    for index, file in enumerate(table.lean_files):
        is_placed = file.entry.spec_id == current and current not in table.unpartitioned
        by_key[partition_key(current, file.entry.partition) if is_placed else None].append(index)
    for key, indexes in by_key.items():
        partition = table.lean_files[indexes[0]].entry.partition
        yield {} if key is None else named_partition(table, current, partition), indexes


def _moved_bins(
    table: PinnedTable, files: Sequence[BucketFile], options: CompactionOptions
) -> Iterator[Files]:
    """The bins of files of older specs: partition by partition, as these go to few others."""
    entries = [table.lean_files[file.index].entry for file in files]
    chosen = [
        replace(file, order=(str(partition_key(entry.spec_id, entry.partition)), *file.order))
        for file, entry in zip(files, entries, strict=True)
        if file.is_candidate
    ]
    for bin_files in all_in_bins(chosen, options):
        if len(bin_files) >= options.min_files or any(file.is_flawed for file in bin_files):
            yield bin_files


def _file(table: PinnedTable, index: int, options: CompactionOptions) -> BucketFile:
    file = table.lean_files[index]
    entry, number = file.entry, file.entry.sequence_number
    written = number if entry.file_sequence_number is None else entry.file_sequence_number
    # A compaction gives its files the number of the snapshot that it began with. The deletes of
    # that one have been applied.
    is_compacted = written > number
    own = [each for each in file.deletes if not is_compacted or each.sequence_number > number]
    deletes = [*own, *file.equality_deletes]
    # Of deletes that are about several files, nobody knows how many rows they are about here.
    marked = min(sum(each.row_count for each in file.own_deletes), entry.row_count)
    live_rows = entry.row_count - marked
    live_size = math.ceil(entry.size * live_rows / entry.row_count) if entry.row_count else 0
    is_flawed = marked > 0 and marked >= options.deleted_share * entry.row_count
    if options.is_full:
        is_older = entry.spec_id != table.metadata.default_spec_id
        is_flawed = is_older or not (entry.row_count and options.is_ordered(entry)) or bool(deletes)
    return BucketFile(
        index=index,
        order=(not is_compacted, number, file.path),
        created=(written, 0),
        live_rows=live_rows,
        live_size=live_size,
        is_small=options.is_small(live_size if is_flawed else entry.size),
        is_flawed=is_flawed,
        run=str(entry.snapshot_id) if is_compacted else None,
    )


def _part(
    name: TableName,
    table: PinnedTable,
    root: str,
    values: Mapping[str, Any],
    files: tuple[BucketFile, ...],
    options: CompactionOptions,
) -> PlannedPart:
    live = [table.lean_files[file.index] for file in files]
    described = tuple(_described(name, table, (file.index for file in files)))
    rows = sum(file.live_rows for file in files)
    size = sum(file.live_size for file in files)
    is_moved = _is_moved(table, files[-1])
    keeps_order = len(live) == 1 and options.is_ordered(live[0].entry)
    count = 0 if options.order is None or keeps_order else 1
    if is_moved or (count and options.is_asked):
        count = options.count_of(size)
    expected = CompactedPartition(
        values={},
        files_before=len(files),
        files_after=max(count, 1) if rows else 0,
        bytes_before=sum(file.size for file in described),
        bytes_after=size if rows else 0,
        rows=rows,
        vectors_removed=sum(len(file.own_deletes) for file in live),
    )
    # Beside the newest file, unless that is of an older spec.
    is_older = live[-1].entry.spec_id != table.metadata.default_spec_id
    folder = root if is_older else folder_of_new_version(root, live[-1].path)
    native = IcebergPart(folder, described, count, is_moved)
    indexes = tuple(file.index for file in files)
    return PlannedPart(tuple(values.values()), indexes, native, expected)


def _described(name: TableName, table: PinnedTable, indexes: Iterable[int]) -> Iterator[PartFile]:
    """The files of a part; equal constants are one object."""
    known: dict[PartitionKey, Constants] = {}
    for index in indexes:
        file = table.lean_files[index]
        entry, planned = file.entry, scanned(table, name, index, file)
        key = partition_key(entry.spec_id, entry.partition)
        constants = known.setdefault(key, planned.constants)
        with reading_metadata(table.place):
            lineage = row_lineage(table, file)
        yield PartFile(
            index, planned.path, entry.size, entry.row_count, planned.deletes, constants, lineage
        )
