"""Compaction: the same rows in fewer files. The statement and its report."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import ClassVar, Final, Literal, get_args

from spark_jobs.contract.checks import require, require_among
from spark_jobs.contract.compaction_order import OrderParameter, sort_terms
from spark_jobs.contract.inserts import PartitionSpec, require_partition
from spark_jobs.contract.sizes import parse_size

CompactMode = Literal["minor", "full", "deletes"]
Manifests = Literal["keep", "rewrite", "only"]

# Files above this are more than a task can be expected to write in one go.
LARGEST_TARGET: Final = 8 * 2**30
# So many bytes of rows are sorted together at most, by one task, unless new files are larger.
SORTED_BYTES: Final = 4 * 2**30


# What has an effect on compactions of deletes alone.
_OF_DELETES: Final = frozenset(
    ("mode", "partitions", "min_files", "max_bytes", "max_partitions", "manifests")
)

# The counts of a partition, of which a report has the sums.
PARTITION_COUNTS: Final = (
    "files_before",
    "files_after",
    "bytes_before",
    "bytes_after",
    "rows",
    "vectors_removed",
    "indexes_lost",
)


@dataclass(frozen=True, slots=True)
class CompactSpec:
    """Put the rows of partitions into fewer files, without changing them.

    ``partitions`` are specs of the partitions to compact; empty: all. An empty spec is all of a
    table that has no partition columns, and of no other. ``mode`` ``minor`` rewrites
    what is worth it, ``full`` all that is not yet as a compaction leaves it; ``deletes``: only the
    position deletes of data files that have ``min_files`` files of them. Sizes are texts with a
    unit (``128 mb``). ``target_file_size``: the size of new files. ``min_files``: ``minor`` puts
    files together from this number on. ``small_file_share``: the share (0 to 1) of the target size
    below which a file is small. ``deleted_share``: the share of a file's rows above which marked
    rows are worth a rewrite. ``sorted_runs``: ``minor`` merges buckets of a table with a primary
    key from this number of sorted runs on. None: the table's option, else the format's default.
    ``max_bytes`` and ``max_partitions`` limit what one run reads, the worst partitions first.
    ``include_pending``: records that batch readers do not see yet are merged, and so seen.
    ``sort_by`` sorts the rows of new files by columns, each with ASC or DESC and NULLS FIRST or
    NULLS LAST behind it; ``zorder_by`` by their z-value. ``full`` then rewrites everything.
    ``manifests``: ``rewrite`` those of an Iceberg table after the compaction, or ``only`` them.
    """

    partitions: tuple[PartitionSpec, ...] = ()
    mode: CompactMode = "minor"
    target_file_size: str | None = None
    min_files: int | None = None
    small_file_share: float | None = None
    deleted_share: float | None = None
    sorted_runs: int | None = None
    max_bytes: str | None = None
    max_partitions: int | None = None
    include_pending: bool = False
    sort_by: tuple[str, ...] = ()
    zorder_by: tuple[str, ...] = ()
    manifests: Manifests = "keep"
    kind: ClassVar[str] = "compact"

    def __post_init__(self) -> None:
        for index, partition in enumerate(self.partitions):
            require_partition(partition, f"partitions[{index}]")
        modes = get_args(CompactMode)
        require_among(self.mode, modes, "mode")
        choices = get_args(Manifests)
        require_among(self.manifests, choices, "manifests")
        if self.manifests == "only":
            self._require_alone("manifests is 'only'", {"manifests"})
        if self.mode == "deletes":
            self._require_alone("mode is 'deletes'", _OF_DELETES)
        for name in ("target_file_size", "max_bytes"):
            _require_size(name, getattr(self, name))
        target = self.target_file_size
        require(
            target is None or parse_size(target) <= LARGEST_TARGET,
            "target_file_size",
            f"{target} is more than 8 gb, which no task can write or read well",
            "Use a size such as 128 mb or 512 mb.",
        )
        for name, least in (("min_files", 2), ("sorted_runs", 2), ("max_partitions", 1)):
            value = getattr(self, name)
            require(value is None or value >= least, name, f"{value} is less than {least}")
        for name in ("small_file_share", "deleted_share"):
            share = getattr(self, name)
            require(share is None or 0 <= share <= 1, name, f"{share} is not from 0 to 1")
        sort_terms("sort_by", self.sort_by)
        sort_terms("zorder_by", self.zorder_by)
        require(
            not (self.sort_by and self.zorder_by),
            "zorder_by",
            "is given beside sort_by, and rows have one order",
            "Leave one of them out.",
        )

    def _require_alone(self, problem: str, effective: Collection[str]) -> None:
        """Check that no parameter but those that are ``effective`` is given."""
        for parameter in fields(self):
            is_given = getattr(self, parameter.name) != parameter.default
            is_right = parameter.name in effective or not is_given
            require(is_right, parameter.name, f"has no effect if {problem}", "Leave it out.")

    @property
    def asked_order(self) -> tuple[OrderParameter, tuple[str, ...]] | None:
        """The parameter that asks for an order of rows, and its terms; None: nothing does."""
        if self.zorder_by:
            return "zorder_by", self.zorder_by
        return ("sort_by", self.sort_by) if self.sort_by else None


def require_named(partitions: Sequence[PartitionSpec], keys: Sequence[str]) -> None:
    """Check that no spec of a table with the partition columns ``keys`` is empty.

    Raises:
        RequestError: REQUEST_INVALID.
    """
    for index, partition in enumerate(partitions):
        require(
            bool(partition) or not keys,
            f"partitions[{index}]",
            "is empty",
            f"Name values of {', '.join(keys)}. To compact all partitions, leave partitions out.",
        )


@dataclass(frozen=True, slots=True)
class CompactedPartition:
    """What a compaction did, or would do, in one partition.

    ``values`` has the text of each partition column, None for NULL; it is empty for files that are
    in no partition of today, as an older partition spec placed them. ``files_before`` and
    ``bytes_before`` are of the files that were read and removed, ``files_after`` and
    ``bytes_after`` of those that replace them; of a dry run, the latter are estimates.
    ``rows`` are those of the new files (of a dry run: of the old ones, without marked rows).
    ``vectors_removed`` counts deletion vectors that went with their files, ``indexes_lost`` file
    indexes and bloom filters that new files do not have. ``error``: why it was left as it is.
    """

    values: Mapping[str, str | None]
    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    rows: int = 0
    vectors_removed: int = 0
    indexes_lost: int = 0
    error: str = ""

    def plus(self, other: CompactedPartition) -> CompactedPartition:
        """What both did, in the same partition."""
        counts = {name: getattr(self, name) + getattr(other, name) for name in PARTITION_COUNTS}
        return replace(self, **counts)


@dataclass(frozen=True, slots=True)
class CompactionReport:
    """What a compaction did to a table, or would do.

    ``partitions`` are the first 1,000, those that failed first, then the worst first; the other
    fields count all that were compacted, over all tries of the operation, as in
    ``CompactedPartition``. ``snapshots`` are those that were made. ``partitions_failed`` were left
    as they are, ``partitions_left`` were worth compacting, but beyond the limits of this run.
    ``changelog_files`` counts new ones. ``manifests_before`` were rewritten to, or kept as,
    ``manifests_after``; ``deletes_removed`` are delete files that applied to nothing.
    """

    partitions: tuple[CompactedPartition, ...] = ()
    partitions_compacted: int = 0
    partitions_failed: int = 0
    partitions_left: int = 0
    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    rows: int = 0
    vectors_removed: int = 0
    indexes_lost: int = 0
    changelog_files: int = 0
    snapshots: tuple[int, ...] = ()
    manifests_before: int = 0
    manifests_after: int = 0
    deletes_removed: int = 0


def _require_size(name: str, text: str | None) -> None:
    problem = ""
    try:
        size = None if text is None else parse_size(text)
    except ValueError as error:
        problem = str(error)
    else:
        problem = f"{text} is not positive" if size is not None and size <= 0 else ""
    require(not problem, name, f"{problem}")
