"""How many buckets a table and its partitions have. Driver only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from spark_jobs.connectors.paimon.format.bucket_key import POSTPONED
from spark_jobs.connectors.paimon.table.stored_files import StoredFiles

_DYNAMIC: Final = -1
_FIRST_COUNT: Final = "postpone.default-bucket-num"


@dataclass(frozen=True)
class Bucketing:
    """What the option ``bucket`` means on a table with or without a primary key."""

    options: Mapping[str, str]
    is_keyed: bool
    files: StoredFiles

    @property
    def count(self) -> int | None:
        """The number of fixed buckets; None if the option ``bucket`` says none."""
        return self._option if self._option > 0 else None

    @property
    def matters(self) -> bool:
        """Whether a row's bucket matters: it is fixed, or depends on the primary key."""
        return self.count is not None or self.is_keyed

    @property
    def is_dynamic(self) -> bool:
        """Whether the HASH index says which bucket a key is in."""
        return self.is_keyed and self._option == _DYNAMIC

    @property
    def is_postponed(self) -> bool:
        """Whether partitions have their own bucket counts, and some files wait for their bucket."""
        return self.is_keyed and self._option == POSTPONED

    @property
    def _option(self) -> int:
        return int(self.options.get("bucket", str(_DYNAMIC)))

    def total(self, partition: tuple[Any, ...]) -> int:
        """The number of buckets of a partition, as its manifest entries have it."""
        if not self.is_postponed:
            return self._option
        return self.postponed_counts.get(partition, self.first_count)

    @property
    def first_count(self) -> int:
        """The bucket count of a new partition, where partitions have counts of their own."""
        return int(self.options.get(_FIRST_COUNT, "1"))

    @cached_property
    def postponed_counts(self) -> Mapping[tuple[Any, ...], int]:
        """The bucket counts of partitions that have counts of their own."""
        return {
            tuple(entry.partition.values): entry.total_buckets
            for _, entry in self.files.located_entries
            if entry.bucket >= 0
        }
