"""The sequence numbers of rows in an append table. Driver only.

Paimon orders the files of a fixed bucket by them, when it reads and when it compacts (option
``bucket-append-ordered``; ``AppendOnlyWriter``, ``BucketedAppendCompactManager``): every file holds
a range of its own. A rewritten file takes the range, and so the place, of the one that it replaces;
new files follow behind all others of their bucket. A table without fixed buckets has no order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from spark_jobs.connectors.paimon.format.bucket_key import BucketKey


class SequenceNumbers:
    """What is next in each bucket of a snapshot."""

    def __init__(self, entries: Iterable[Any], *, ordered: bool) -> None:
        self._ordered = ordered
        self._next: dict[BucketKey, int] = defaultdict(int)
        for entry in entries:
            place = bucket_key_of(entry)
            self._next[place] = max(self._next[place], entry.file.max_sequence_number + 1)

    def of_new_file(self, place: BucketKey, rows: int) -> tuple[int, int]:
        """The first and the last number of a new file, behind the files before it."""
        if not self._ordered:
            return 0, 0
        first = self._next[place]
        self._next[place] = first + rows
        return first, first + rows - 1


def bucket_key_of(entry: Any) -> BucketKey:
    """Where the file of a manifest entry is."""
    return BucketKey(tuple(entry.partition.values), entry.bucket)


def numbers_of(entry: Any) -> tuple[int, int]:
    """The range of the file of a manifest entry."""
    return entry.file.min_sequence_number, entry.file.max_sequence_number
