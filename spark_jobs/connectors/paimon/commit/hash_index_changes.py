"""The HASH index files that a write adds and removes. Driver only."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from spark_jobs.connectors.paimon.commit.index_changes import IndexChanges
from spark_jobs.connectors.paimon.format.bucket_key import BucketKey
from spark_jobs.connectors.paimon.format.sequence_numbers import bucket_key_of
from spark_jobs.connectors.paimon.library import index_manifest
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.datafiles.values import decode_value


def hash_index_changes(
    table: PinnedTable,
    written: Iterable[Mapping[str, Any]],
    gone: Collection[str],
    *,
    overwrites: bool,
) -> IndexChanges:
    """The changes of the index, given the index files ``written`` by the sinks.

    A new file replaces its bucket's old one. Where a statement ``overwrites`` a partition, the
    files of buckets of which all data files are ``gone`` go as well.
    """
    changes = IndexChanges()
    places = set()
    for document in written:
        place = BucketKey(tuple(map(decode_value, document["partition"])), document["bucket"])
        places.add(place)
        changes.adds.append(
            index_manifest.new_hash_index(
                table.table, place, document["path"], document["size"], document["hashes"]
            )
        )
    if overwrites:
        places |= _emptied(table, {place.partition for place in places}, gone)
    old = table.files.hash_indexes
    removed = [old[place].entry for place in sorted(places & old.keys(), key=repr)]
    changes.deletes += map(index_manifest.removed_index, removed)
    return changes


def _emptied(
    table: PinnedTable, written: Collection[tuple[Any, ...]], gone: Collection[str]
) -> set[BucketKey]:
    """The buckets without a data file in the partitions that were ``written`` or lost files."""
    live, touched = set(), set(written)
    for _, entry in table.files.located_entries:
        place = bucket_key_of(entry)
        if entry.file.file_name in gone:
            touched.add(place.partition)
        else:
            live.add(place)
    return {
        place
        for place in table.files.hash_indexes
        if place.partition in touched and place not in live
    }
