"""Compaction that a table format can offer: the same rows in fewer files.

The connector plans which files become new ones and publishes the result; the engine runs the parts
of the plan as tasks. Modelled on Trino's ``ALTER TABLE EXECUTE optimize``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from spark_jobs.contract.compaction import CompactedPartition, CompactSpec
from spark_jobs.contract.compaction_record import ManifestRecord
from spark_jobs.spi.tables import CommittedSnapshot, TableHandle
from spark_jobs.spi.writes import Fragment, always_wanted

if TYPE_CHECKING:
    from spark_jobs.errors import JobError

# Whether the partition with these Python values, by column, is to be compacted.
WantedPartition = Callable[[Mapping[str, Any]], bool]


@dataclass(frozen=True, slots=True)
class CompactionPart:
    """Files that one task turns into new ones, independent of all other parts.

    ``number`` identifies the part in its group. ``partition`` is the key of its partition
    (``contract.partition_names.partition_key``), ``size`` the bytes to read. ``native`` is the
    connector's own picklable object, all that a task gets.
    """

    number: int
    partition: str
    size: int
    native: Any = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class CompactionGroup:
    """Partitions that are published together, as one snapshot.

    ``expected`` is what the parts read and are expected to write, by the partition's key.
    """

    parts: tuple[CompactionPart, ...]
    expected: Mapping[str, CompactedPartition]


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """The groups in the order in which they are worth it, the worst partitions first.

    ``partitions_left`` were worth compacting, but are beyond the limits of the run.
    """

    groups: tuple[CompactionGroup, ...]
    partitions_left: int = 0


@dataclass(frozen=True, slots=True)
class PartResult:
    """What became of a part: ``fragments``, or the ``error`` for which its partition is left."""

    part: CompactionPart
    fragments: tuple[Fragment, ...] = ()
    error: JobError | None = None


@dataclass(frozen=True, slots=True)
class PublishedGroup:
    """A published group; ``snapshot`` is None if every part was in conflict.

    ``lost`` are the numbers of the parts that were left out, because another writer removed or
    marked one of their files; their new files are removed. ``done`` is what the others did.
    """

    snapshot: CommittedSnapshot | None
    lost: frozenset[int]
    done: PublishedParts


@dataclass(frozen=True, slots=True)
class PublishedParts:
    """What the published parts of a group did: by the partition's key, and all together."""

    partitions: Mapping[str, CompactedPartition]
    changelog_files: int = 0


@dataclass(frozen=True, slots=True)
class GroupCommit:
    """How a group is published.

    ``properties`` makes the properties of the snapshot from what it has done, and the numbers of
    the parts that it left out. ``require_wanted`` is called last, right before each try to
    publish; it raises a JobError if the snapshot is no longer wanted.
    """

    operation_id: str
    properties: Callable[[PublishedParts, frozenset[int]], Mapping[str, str]]
    require_wanted: Callable[[], None] = always_wanted


@dataclass(frozen=True, slots=True)
class ManifestCommit:
    """How a rewrite of manifests is published; as ``GroupCommit``."""

    operation_id: str
    properties: Callable[[ManifestRecord], Mapping[str, str]]
    require_wanted: Callable[[], None] = always_wanted


class PartCompactor(Protocol):
    """The executor half: must not import a table library. Picklable."""

    def compact(self, native: Any, task_key: str) -> Sequence[Fragment]:
        """Write the new files of a part (``CompactionPart.native``) and return fragments.

        ``task_key`` is unique among parts and attempts. A failure removes what was written.

        Raises:
            CatalogError: DATA_FILE_UNREADABLE, METADATA_UNREADABLE.
            DataError: NOT_NULL_VIOLATION: a file is older than a NOT NULL of its column.
            InternalError: STORAGE_UNAVAILABLE.
            NotSupportedError: the records cannot be read or merged here; gives the reason.
        """
        ...

    def discard(self, fragments: Sequence[Fragment]) -> None:
        """Remove the new files of fragments that are not published; may run on the driver."""
        ...


class ConnectorCompaction(Protocol):
    """Plans and publishes compactions. Driver only."""

    def plan(
        self, table: TableHandle, spec: CompactSpec, wanted: WantedPartition
    ) -> CompactionPlan:
        """What ``spec`` compacts in the pinned snapshot of ``table``.

        Partitions that are not ``wanted`` are left alone. Nothing worth doing is a plan without
        groups.

        Raises:
            NotSupportedError: the table or its options are not supported; gives the reason.
            AnalysisError: COLUMN_NOT_FOUND, TYPE_MISMATCH: the order that is asked for.
            CatalogError: METADATA_UNREADABLE.
        """
        ...

    def begin(self, table: TableHandle, operation_id: str) -> None:
        """Guard the pinned snapshot, from which a later try looks for what this one committed.

        Raises:
            CommitError: COMMIT_CONFLICT: the snapshot expired before it was guarded.
        """
        ...

    def compactor(self, table: TableHandle, spec: CompactSpec) -> PartCompactor:
        """What executors need to compact the parts of one group of a plan for ``table``."""
        ...

    def publish(
        self, table: TableHandle, results: Sequence[PartResult], commit: GroupCommit
    ) -> PublishedGroup:
        """Publish the results of a group's parts, none of which failed, as one snapshot.

        Only who removed or marked a part's file is in conflict with that part.

        Raises:
            CommitError: COMMIT_OUTCOME_UNKNOWN; COMMIT_CONFLICT: the plan does not fit the table
                any more, or other writers were faster each time (nothing was published).
            InternalError: STORAGE_UNAVAILABLE (nothing was published).
            JobError: raised by ``require_wanted`` (nothing was published).
        """
        ...

    def abandon(self, table: TableHandle, compactor: PartCompactor) -> None:
        """Remove every file that tasks wrote with ``compactor``; none of them is published.

        The driver does not know of all files: tasks that succeeded before another one failed wrote
        some too.
        """
        ...

    def planned_manifests(self, table: TableHandle) -> ManifestRecord:
        """What a rewrite of the manifests of the pinned snapshot would do.

        Raises:
            NotSupportedError: the format has none to rewrite, or this table's are not.
            CatalogError: METADATA_UNREADABLE.
        """
        ...

    def rewrite_manifests(
        self, table: TableHandle, commit: ManifestCommit
    ) -> tuple[CommittedSnapshot | None, ManifestRecord]:
        """Write the manifests of the latest snapshot anew; None: they are as that leaves them.

        Raises:
            CommitError: COMMIT_OUTCOME_UNKNOWN, COMMIT_CONFLICT (nothing was published).
            InternalError: STORAGE_UNAVAILABLE (nothing was published).
            JobError: as ``planned_manifests``, or raised by ``require_wanted``.
        """
        ...

    def commits(self, table: TableHandle, operation_id: str) -> Sequence[CommittedSnapshot]:
        """The snapshots that the operation has published and that have not expired, oldest first.

        Raises:
            CatalogError: METADATA_UNREADABLE.
        """
        ...

    def end(self, table: TableHandle, operation_id: str) -> None:
        """Release the guard: the operation's result is stored."""
        ...
