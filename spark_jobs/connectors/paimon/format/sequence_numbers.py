"""The sequence numbers of rows in an append table. Driver only.

They order the files of a fixed bucket when Paimon reads and compacts it (option
``bucket-append-ordered``; ``AppendOnlyWriter``, ``BucketedAppendCompactManager``). Every file has
its own range. A rewritten file takes the range, and so the place, of the file that it replaces. New
files follow all others of their bucket. A table without fixed buckets has no order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from spark_jobs.connectors.paimon.format.bucket_key import BucketKey


class SequenceNumbers:
    """The next sequence number in each bucket of a snapshot."""

    def __init__(self, entries: Iterable[Any], *, ordered: bool) -> None:
        self._ordered = ordered
        self._next: dict[BucketKey, int] = defaultdict(int)
        for entry in entries:
            place = bucket_key_of(entry)
            self._next[place] = max(self._next[place], entry.file.max_sequence_number + 1)

    def of_new_file(self, place: BucketKey, rows: int) -> tuple[int, int]:
        """The first and last number of a new file, which follows all others of its bucket."""
        if not self._ordered:
            return 0, 0
        first = self._next[place]
        self._next[place] = first + rows
        return first, first + rows - 1


def bucket_key_of(entry: Any) -> BucketKey:
    """The partition and bucket of a manifest entry's file."""
    return BucketKey(tuple(entry.partition.values), entry.bucket)


def numbers_of(entry: Any) -> tuple[int, int]:
    """The first and last sequence number of a manifest entry's file."""
    return entry.file.min_sequence_number, entry.file.max_sequence_number
