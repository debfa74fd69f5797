"""Detects records that others added where a keyed write stores its own. Driver only.

Records of one key are ordered by their sequence numbers, which a writer takes from the bucket's
files. So under either isolation, a record that was added since then is a conflict: to appended
changes anywhere in the bucket, to rewritten sections within their range of keys.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from spark_jobs.connectors.paimon.commit.gap import Gap, OtherCommit
from spark_jobs.connectors.paimon.commit.new_snapshot import Change
from spark_jobs.connectors.paimon.format.bucket_key import BucketKey
from spark_jobs.connectors.paimon.format.manifest_entries import ADD
from spark_jobs.connectors.paimon.format.sequence_numbers import bucket_key_of
from spark_jobs.connectors.paimon.library.index_manifest import is_hash_index
from spark_jobs.connectors.paimon.library.key_ranges import KeyRange, key_range


def overtaking(gap: Gap, change: Change) -> Iterator[tuple[OtherCommit, list[Any]]]:
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


def reindexing(gap: Gap, change: Change) -> Iterator[tuple[OtherCommit, list[Any]]]:
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
