"""Which sections of a table with a primary key are merged. Driver only.

A plan leaves nothing that the next one would do: the sections of a part become files of the
bucket's highest level, and at most the last one of neighbours is small.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.compaction.keyed_compactor import (
    KeyedCompactor,
    KeyedPart,
    OwedChangelog,
)
from spark_jobs.connectors.paimon.compaction.keyed_sections import (
    BucketSections,
    Stretch,
    bucket_sections,
)
from spark_jobs.connectors.paimon.compaction.options import CompactionOptions
from spark_jobs.connectors.paimon.compaction.planned_parts import PlannedPart
from spark_jobs.connectors.paimon.library.data_files import has_index
from spark_jobs.connectors.paimon.read.run_files import run_file, section_reader
from spark_jobs.connectors.paimon.table.primary_key import KeyedTable
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.connectors.paimon.write.keyed_sinks import changelog_files
from spark_jobs.connectors.paimon.write.table_layout import NamePrefixes, new_file_layout
from spark_jobs.contract.compaction import CompactedPartition
from spark_jobs.spi.compaction import WantedPartition

# A bucket with more bytes becomes several parts, if its sections allow it.
_PART_BYTES: Final = 2**30


def keyed_parts(
    table: PinnedTable, keyed: KeyedTable, options: CompactionOptions, wanted: WantedPartition
) -> Iterator[PlannedPart]:
    """The parts of the plan for a table with a primary key, bucket by bucket.

    Raises:
        CatalogError: METADATA_UNREADABLE.
        NotSupportedError: the table's options cannot be honoured.
    """
    names = table.schema.partition_keys
    asked: dict[tuple[object, ...], bool] = {}
    for bucket in bucket_sections(table, keyed, options):
        partition = bucket.place.partition
        if partition not in asked:
            asked[partition] = wanted(dict(zip(names, partition, strict=True)))
        if asked[partition]:
            yield from _parts(bucket)


def keyed_compactor(
    table: PinnedTable,
    keyed: KeyedTable,
    filesystem: pafs.FileSystem,
    options: CompactionOptions,
    prefixes: NamePrefixes,
) -> KeyedCompactor:
    """What executors need; new files have names with ``prefixes``, which no others have."""
    return KeyedCompactor(
        name_prefix=prefixes.data,
        layout=new_file_layout(table, filesystem, options.target_file_size),
        reader=section_reader(table, keyed, filesystem),
        changelog=_owed_changelog(table, keyed, prefixes.changelog),
    )


def _owed_changelog(
    table: PinnedTable, keyed: KeyedTable, name_prefix: str
) -> OwedChangelog | None:
    """Where changes of the records go that ``KeyedTable.owes_changelog`` tells; None: nowhere."""
    if keyed.producer not in ("lookup", "full-compaction"):
        return None
    keeps_rows = keyed.engine.kind == "first-row"
    below = 1 if keyed.producer == "lookup" else keyed.highest_level
    return OwedChangelog(changelog_files(table, name_prefix, keeps_rows=keeps_rows), below)


def _parts(bucket: BucketSections) -> Iterator[PlannedPart]:
    """The parts of a bucket, each with neighbouring stretches."""
    found: list[Stretch] = []
    size = 0
    for stretch in bucket.stretches():
        found.append(stretch)
        size += _size(bucket.table, stretch)
        if size >= _PART_BYTES:
            yield _part(bucket, found)
            found, size = [], 0
    if found:
        yield _part(bucket, found)


def _part(bucket: BucketSections, stretches: Sequence[Stretch]) -> PlannedPart:
    table = bucket.table
    files = tuple(index for stretch in stretches for section in stretch for index in section)
    native = KeyedPart(
        place=bucket.place,
        level=bucket.level,
        files=files,
        size=sum(_size(table, stretch) for stretch in stretches),
        stretches=tuple(
            tuple(tuple(run_file(table, index) for index in section) for section in stretch)
            for stretch in stretches
        ),
    )
    return PlannedPart(bucket.place, files, native, _expected(bucket, files, stretches))


def _expected(
    bucket: BucketSections, files: Sequence[int], stretches: Sequence[Stretch]
) -> CompactedPartition:
    """What is read, and at most written: how many records merge is not known."""
    table, target = bucket.table, bucket.options.target_file_size
    entries = [table.located_entries[index][1] for index in files]
    vectors = [table.vectors.get(entry.file.file_name) for entry in entries]
    marked = sum(vector.cardinality for vector in vectors if vector is not None)
    records = sum(entry.file.row_count for entry in entries)
    size = sum(entry.file.file_size for entry in entries)
    return CompactedPartition(
        values={},
        files_before=len(files),
        files_after=sum(math.ceil(_size(table, each) / target) for each in stretches),
        bytes_before=size,
        bytes_after=math.ceil(size * (records - marked) / records) if records else 0,
        rows=records - marked,
        vectors_removed=sum(vector is not None for vector in vectors),
        indexes_lost=sum(has_index(entry.file) for entry in entries),
    )


def _size(table: PinnedTable, stretch: Stretch) -> int:
    indexes = (index for section in stretch for index in section)
    return sum(table.located_entries[index][1].file.file_size for index in indexes)
