"""How executors choose the buckets of rows. Driver only."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.format.buckets import BUCKET_COLUMN, BucketFunction
from spark_jobs.connectors.paimon.format.hash_index import (
    DynamicBuckets,
    Partition,
    PartitionIndex,
    PostponedBuckets,
)
from spark_jobs.connectors.paimon.keyed.bucket_index import MOST_BUCKETS, BucketIndexes
from spark_jobs.connectors.paimon.library import index_manifest, table_schema
from spark_jobs.connectors.paimon.library.index_manifest import IndexFile
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.spi.writes import DerivedColumns

_TARGET_KEYS: Final = "dynamic-bucket.target-row-num"
_DEFAULT_TARGET_KEYS: Final = 2_000_000
_FIRST_BUCKETS: Final = "dynamic-bucket.initial-buckets"
_MOST_BUCKETS: Final = "dynamic-bucket.max-buckets"


def bucket_column(table: PinnedTable, filesystem: pafs.FileSystem) -> DerivedColumns | None:
    """The column with the bucket of each row; None if rows go anywhere."""
    columns = ((BUCKET_COLUMN, "int"),)
    schema = table_schema.arrow_schema(table.table)
    if table.bucketing.count is not None:
        names = table.schema.bucket_key
        key = tuple(schema.field(name) for name in names)
        return DerivedColumns(names, columns, BucketFunction(key, table.bucketing.count))
    if table.keyed is None:
        return None
    inputs = (*table.schema.partition_keys, *table.keyed.key)
    if table.bucketing.is_dynamic:
        return DerivedColumns(inputs, columns, dynamic_buckets(table, filesystem))
    key = tuple(schema.field(name) for name in table.schema.bucket_key)
    partition_keys = tuple(table.schema.partition_keys)
    first = table.bucketing.first_count
    function = PostponedBuckets(partition_keys, key, table.bucketing.postponed_counts, first)
    return DerivedColumns(inputs, columns, function)


def dynamic_buckets(table: PinnedTable, filesystem: pafs.FileSystem) -> DynamicBuckets:
    """The HASH index at the snapshot, and the buckets for new keys.

    These are the buckets with fewer keys than the option ``dynamic-bucket.target-row-num``. If
    there is none, it is one more bucket, or all buckets if there may be no more.
    """
    files: dict[Partition, dict[int, IndexFile]] = defaultdict(dict)
    for place, file in table.files.hash_indexes.items():
        files[place.partition][place.bucket] = file
    first = max(int(table.options.get(_FIRST_BUCKETS, "1")), 1)
    schema = table_schema.arrow_schema(table.table)
    key = () if table.keyed is None else table.keyed.key
    return DynamicBuckets(
        filesystem=filesystem,
        partition_keys=tuple(table.schema.partition_keys),
        key=tuple(schema.field(name) for name in key),
        partitions={
            partition: PartitionIndex(
                {bucket: file.path for bucket, file in sorted(index_files.items())},
                _open_buckets(table, index_files),
            )
            for partition, index_files in files.items()
        },
        first_open=tuple(range(min(first, _most_buckets(table)))),
    )


def bucket_indexes(
    table: PinnedTable,
    filesystem: pafs.FileSystem,
    written_to: pafs.FileSystem,
    name_prefix: str,
    *,
    replaces: bool,
) -> BucketIndexes | None:
    """How sinks keep the HASH index; None for a table without one."""
    if not table.bucketing.is_dynamic:
        return None
    return BucketIndexes(
        buckets=dynamic_buckets(table, filesystem),
        filesystem=written_to,
        name_prefix=name_prefix,
        directory=index_manifest.index_directory(table.table),
        replaces=replaces,
        target_keys=_target_keys(table),
        most_buckets=_most_buckets(table),
    )


def _open_buckets(table: PinnedTable, files: dict[int, IndexFile]) -> tuple[int, ...]:
    counts = {bucket: file.entry.index_file.row_count for bucket, file in files.items()}
    open_buckets = [bucket for bucket, count in counts.items() if count < _target_keys(table)]
    if open_buckets:
        return tuple(sorted(open_buckets))
    following = max(counts) + 1
    return (following,) if following < _most_buckets(table) else tuple(sorted(counts))


def _target_keys(table: PinnedTable) -> int:
    return int(table.options.get(_TARGET_KEYS, _DEFAULT_TARGET_KEYS))


def _most_buckets(table: PinnedTable) -> int:
    asked = int(table.options.get(_MOST_BUCKETS, "-1"))
    return MOST_BUCKETS if asked == -1 else asked
