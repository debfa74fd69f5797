"""What the parts of a compaction did, before it is published. Driver only."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from spark_jobs.contract.compaction import CompactedPartition
from spark_jobs.errors import ErrorCode, InternalError


def require_each_file_once(parts: Iterable[Sequence[Hashable]]) -> None:
    """Check that no two parts, of which each is the names of its files, replace the same file.

    Raises:
        InternalError: two parts do, or one replaces no file.
    """
    seen_names: set[Hashable] = set()
    for part in parts:
        names = set(part)
        if not names or len(names) != len(part) or names & seen_names:
            raise InternalError(
                ErrorCode.INTERNAL_ERROR,
                "A file was compacted by two tasks, or a task compacted none.",
                "This is a defect: report it with the statement.",
            )
        seen_names |= names


def by_partition(
    done: Iterable[tuple[str, CompactedPartition]],
) -> dict[str, CompactedPartition]:
    """What parts did together, by the key of their partition."""
    partitions: dict[str, CompactedPartition] = {}
    for key, did in done:
        partitions[key] = partitions[key].plus(did) if key in partitions else did
    return partitions
