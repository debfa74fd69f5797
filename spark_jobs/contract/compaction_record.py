"""What a snapshot of a compaction records of the partitions that it compacted.

A later try of the operation goes on from there. The record is short, because it is a part of the
snapshot's file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from spark_jobs.contract import codec
from spark_jobs.contract.compaction import PARTITION_COUNTS, CompactedPartition

COMPACTION: Final = "merge.compaction"
MANIFESTS: Final = "merge.manifests"


@dataclass(frozen=True, slots=True)
class PartitionRecord:
    """What was done in one partition.

    ``values`` are those of ``CompactedPartition``, in the order of the partition columns, or none;
    ``counts`` are in the order of ``PARTITION_COUNTS``. ``complete``: nothing else of it was to be
    compacted.
    """

    values: tuple[str | None, ...]
    counts: tuple[int, ...]
    complete: bool

    @classmethod
    def of(cls, partition: CompactedPartition, *, complete: bool) -> PartitionRecord:
        """The record of what was done in ``partition``."""
        counts = tuple(getattr(partition, name) for name in PARTITION_COUNTS)
        return cls(tuple(partition.values.values()), counts, complete)

    def partition(self, columns: Iterable[str]) -> CompactedPartition:
        """What was done, in a partition of these columns.

        Raises:
            RequestError: REQUEST_INVALID if another version of this project wrote the record.
        """
        names, columns = PARTITION_COUNTS, tuple(columns)
        if len(names) != len(self.counts) or len(self.values) not in (0, len(columns)):
            raise codec.invalid(COMPACTION, "a partition has other values or counts than expected")
        values = dict(zip(columns if self.values else (), self.values, strict=True))
        counts: dict[str, Any] = dict(zip(names, self.counts, strict=True))
        return CompactedPartition(values, **counts)


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """What one snapshot did; ``changelog_files`` counts new ones."""

    partitions: tuple[PartitionRecord, ...] = ()
    changelog_files: int = 0

    def to_property(self) -> dict[str, str]:
        """The property of the snapshot that holds the record, as JSON."""
        return {COMPACTION: _text(self)}

    @classmethod
    def of_properties(cls, properties: Mapping[str, str]) -> GroupRecord:
        """The record in the properties of a snapshot.

        Raises:
            RequestError: REQUEST_INVALID if another version of this project wrote it.
        """
        return codec.decode(cls, _document(properties, COMPACTION), COMPACTION)


@dataclass(frozen=True, slots=True)
class ManifestRecord:
    """What a rewrite of manifests did: their numbers, and that of delete files that it removed."""

    before: int = 0
    after: int = 0
    deletes_removed: int = 0

    def to_property(self) -> dict[str, str]:
        """The property of the snapshot that holds the record, as JSON."""
        return {MANIFESTS: _text(self)}

    @classmethod
    def of_properties(cls, properties: Mapping[str, str]) -> ManifestRecord | None:
        """The record in the properties of a snapshot; None: it rewrote no manifests.

        Raises:
            RequestError: REQUEST_INVALID if another version of this project wrote it.
        """
        if MANIFESTS not in properties:
            return None
        return codec.decode(cls, _document(properties, MANIFESTS), MANIFESTS)


def _text(record: GroupRecord | ManifestRecord) -> str:
    return json.dumps(codec.encode(record), separators=(",", ":"), ensure_ascii=False)


def _document(properties: Mapping[str, str], name: str) -> Any:
    try:
        return json.loads(properties.get(name, "{}"))
    except (ValueError, RecursionError) as error:
        raise codec.invalid(name, f"not a JSON document: {error}") from None
