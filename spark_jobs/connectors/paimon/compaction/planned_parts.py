"""The parts of a compaction, before they are put into groups. Driver only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from spark_jobs.connectors.paimon.format.bucket_key import BucketKey
from spark_jobs.contract.compaction import CompactedPartition


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """Files of one bucket that one task turns into new ones.

    ``files`` are indexes in ``PinnedTable.located_entries``. ``native`` is what the task gets, an
    ``AppendPart`` or a ``KeyedPart``. ``expected`` says what is read and estimates what is written;
    it has no ``values``.
    """

    place: BucketKey
    files: tuple[int, ...]
    native: Any = field(repr=False, compare=False)
    expected: CompactedPartition
