"""Which sections of a table with a primary key are merged. Driver only.

A plan leaves nothing that the next one would do: the sections of a part become files of the
bucket's highest level, and at most the last one of neighbours is small.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.compaction.keyed_compactor import (
    KeyedBucket,
    KeyedCompactor,
    KeyedFiles,
    KeyedPart,
    OwedChangelog,
)
from spark_jobs.connectors.paimon.compaction.keyed_sections import (
    BucketSections,
    Stretch,
    bucket_sections,
    postponed_files,
)
from spark_jobs.connectors.paimon.compaction.options import CompactionOptions
from spark_jobs.connectors.paimon.format.manifest_entries import BucketKey
from spark_jobs.connectors.paimon.library.data_files import has_index
from spark_jobs.connectors.paimon.read.planning import run_file, section_reader
from spark_jobs.connectors.paimon.table.primary_key import KeyedTable
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.connectors.paimon.write.keyed_sinks import changelog_files
from spark_jobs.connectors.paimon.write.table_layout import NamePrefixes, new_file_layout
from spark_jobs.connectors.shared.compaction.plan import PlannedPart
from spark_jobs.contract.compaction import CompactedPartition
from spark_jobs.spi.compaction import WantedPartition

_PART_BYTES: Final = 2**30


def keyed_parts(
    table: PinnedTable,
    keyed: KeyedTable,
    options: CompactionOptions,
    wanted: WantedPartition,
    part_bytes: int = _PART_BYTES,
) -> Iterator[PlannedPart]:
    """The parts of the plan for a table with a primary key, bucket by bucket.

    A bucket with more than ``part_bytes`` becomes several parts, if its sections allow it. A
    partition with postponed files that are asked for is one part, because its records may belong
    into any of the buckets.

    Raises:
        CatalogError: METADATA_UNREADABLE.
        NotSupportedError: the table's options cannot be honoured.
    """
    postponed = postponed_files(table) if options.include_pending else {}
    buckets: dict[tuple[Any, ...], dict[int, BucketSections]] = defaultdict(dict)
    for bucket in bucket_sections(table, keyed, options):
        buckets[bucket.place.partition][bucket.place.bucket] = bucket
    names = table.schema.partition_keys
    for partition in sorted({*buckets, *postponed}, key=repr):
        if not wanted(dict(zip(names, partition, strict=True))):
            continue
        if partition in postponed:
            found = [
                buckets[partition].get(number)
                or BucketSections(table, keyed, options, BucketKey(partition, number))
                for number in range(table.bucketing.total(partition))
            ]
            yield _with_postponed(table, postponed[partition], found)
            continue
        for bucket in buckets[partition].values():
            yield from _parts(bucket, part_bytes)


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
        bucket_key=table.schema.bucket_key,
        changelog=_owed_changelog(table, keyed, prefixes.changelog),
    )


def _owed_changelog(
    table: PinnedTable, keyed: KeyedTable, name_prefix: str
) -> OwedChangelog | None:
    """What ``KeyedTable.owes_changelog`` tells; ``input`` owes only that of postponed records."""
    if keyed.producer == "none":
        return None
    files = changelog_files(table, name_prefix, keeps_rows=keyed.engine.kind == "first-row")
    if keyed.producer == "input":
        return OwedChangelog(files, below=0, copies_postponed=True)
    return OwedChangelog(files, below=1 if keyed.producer == "lookup" else keyed.highest_level)


def _parts(bucket: BucketSections, part_bytes: int) -> Iterator[PlannedPart]:
    """The parts of a bucket, each with neighbouring stretches."""
    stretches: list[Stretch] = []
    size = 0
    for stretch in bucket.stretches():
        stretches.append(stretch)
        size += sum(bucket.size(section) for section in stretch)
        if size >= part_bytes:
            yield _part(bucket, stretches)
            stretches, size = [], 0
    if stretches:
        yield _part(bucket, stretches)


def _part(bucket: BucketSections, stretches: Sequence[Stretch]) -> PlannedPart:
    files = tuple(index for stretch in stretches for section in stretch for index in section)
    native = KeyedPart((_bucket(bucket, stretches),))
    new_files = sum(map(bucket.new_files, stretches))
    return PlannedPart(
        bucket.place.partition, files, native, _expected(bucket.table, files, new_files)
    )


def _with_postponed(
    table: PinnedTable, postponed: tuple[int, ...], buckets: Sequence[BucketSections]
) -> PlannedPart:
    """The part of a partition: postponed files, and all its buckets by their numbers."""
    native = KeyedPart(
        tuple(
            _bucket(bucket, tuple(bucket.stretches()))._replace(
                whole=_files(table, bucket.files),
                next_number=bucket.next_number,
            )
            for bucket in buckets
        ),
        _files(table, postponed),
    )
    files = (*postponed, *(index for bucket in buckets for index in bucket.files))
    new_files = sum(bucket.new_files((bucket.files,)) or 1 for bucket in buckets)
    partition = buckets[0].place.partition
    return PlannedPart(partition, files, native, _expected(table, files, new_files))


def _bucket(bucket: BucketSections, stretches: Sequence[Stretch]) -> KeyedBucket:
    return KeyedBucket(
        bucket.place,
        bucket.level,
        tuple(tuple(_files(bucket.table, each) for each in stretch) for stretch in stretches),
    )


def _files(table: PinnedTable, indexes: tuple[int, ...]) -> KeyedFiles:
    size = sum(table.files.located_entries[index][1].file.file_size for index in indexes)
    return KeyedFiles(indexes, tuple(run_file(table, index) for index in indexes), size)


def _expected(table: PinnedTable, files: Sequence[int], new_files: int) -> CompactedPartition:
    """What is read, and written at most: how many records merge is not known."""
    entries = [table.files.located_entries[index][1] for index in files]
    vectors = [table.files.vectors.get(entry.file.file_name) for entry in entries]
    marked = sum(vector.cardinality for vector in vectors if vector is not None)
    records = sum(entry.file.row_count for entry in entries)
    size = sum(entry.file.file_size for entry in entries)
    return CompactedPartition(
        values={},
        files_before=len(files),
        files_after=new_files,
        bytes_before=size,
        bytes_after=math.ceil(size * (records - marked) / records) if records else 0,
        rows=records - marked,
        vectors_removed=sum(vector is not None for vector in vectors),
        indexes_lost=sum(has_index(entry.file) for entry in entries),
    )
