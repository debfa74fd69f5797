"""What a compaction has done so far, over all tries of its operation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from spark_jobs.contract.compaction import (
    PARTITION_COUNTS,
    CompactedPartition,
    CompactionReport,
)
from spark_jobs.contract.compaction_record import GroupRecord, ManifestRecord, PartitionRecord
from spark_jobs.contract.partition_names import partition_key
from spark_jobs.contract.properties import metrics_property
from spark_jobs.contract.result import Metrics
from spark_jobs.errors import JobError
from spark_jobs.spi.compaction import CompactionGroup, PublishedParts
from spark_jobs.spi.tables import CommittedSnapshot

# The most partitions that a report names.
_NAMED = 1_000


@dataclass(frozen=True, slots=True)
class GroupRecords:
    """Makes the properties of a group's snapshot, of which ``common`` are the same for all groups.

    ``unfinished`` are the keys of partitions of which the snapshot does not have everything,
    whatever becomes of this group.
    """

    common: Mapping[str, str]
    group: CompactionGroup
    unfinished: frozenset[str]

    def properties(self, done: PublishedParts, lost: frozenset[int]) -> dict[str, str]:
        """The properties for what was done, without the parts with the numbers ``lost``."""
        left = {part.partition for part in self.group.parts if part.number in lost}
        record = GroupRecord(
            tuple(
                PartitionRecord.of(each, complete=key not in left | self.unfinished)
                for key, each in done.partitions.items()
            ),
            done.changelog_files,
        )
        metrics = metrics_of(done.partitions.values())
        return {**self.common, **metrics_property(metrics), **record.to_property()}


@dataclass(slots=True)
class Tally:
    """What was compacted, by the partition's key, and why partitions were left as they are.

    ``complete`` are the keys of partitions in which nothing is left to do for this operation;
    ``left`` counts those beyond the limits; ``rounds`` are those of this try. ``manifests``: what
    a rewrite of them did.
    """

    done: dict[str, CompactedPartition] = field(default_factory=dict)
    complete: set[str] = field(default_factory=set)
    failed: dict[str, CompactedPartition] = field(default_factory=dict)
    errors: list[JobError] = field(default_factory=list)
    snapshots: list[int] = field(default_factory=list)
    changelog_files: int = 0
    left: int = 0
    rounds: int = 1
    manifests: ManifestRecord | None = None

    @classmethod
    def of(cls, commits: Iterable[CommittedSnapshot], partition_keys: Sequence[str]) -> Tally:
        """What the snapshots of earlier tries did.

        Raises:
            RequestError: REQUEST_INVALID if another version of this project made one.
        """
        tally = cls()
        for commit in commits:
            record = GroupRecord.of_properties(commit.properties)
            tally.snapshots.append(commit.snapshot_id)
            tally.changelog_files += record.changelog_files
            tally.manifests = ManifestRecord.of_properties(commit.properties) or tally.manifests
            for partition_record in record.partitions:
                partition = partition_record.partition(partition_keys)
                tally._add(partition_key(partition.values), partition)
                if partition_record.complete:
                    tally.complete.add(partition_key(partition.values))
        return tally

    @property
    def bytes_read(self) -> int:
        """Bytes of the files that were replaced."""
        return sum(each.bytes_before for each in self.done.values())

    def published(self, snapshot: CommittedSnapshot, done: PublishedParts) -> None:
        """Count a snapshot, and what it did."""
        self.snapshots.append(snapshot.snapshot_id)
        self.changelog_files += done.changelog_files
        for key, partition in done.partitions.items():
            self._add(key, partition)

    def rewrote(self, snapshot: CommittedSnapshot | None, record: ManifestRecord) -> None:
        """Count a rewrite of manifests; without a snapshot, there was nothing to do."""
        self.manifests = record
        if snapshot is not None:
            self.snapshots.append(snapshot.snapshot_id)

    def leave(self, key: str, expected: CompactedPartition, error: JobError) -> None:
        """Note why a partition was left as it is, at least in part."""
        if key in self.failed:
            return
        values = expected.values
        self.failed[key] = CompactedPartition(values, error=f"{error.code.name}: {error.message}")
        self.errors.append(error)

    def report(self) -> CompactionReport:
        """The report of the operation."""
        compacted = [each for key, each in self.done.items() if key not in self.failed]
        return report_of(
            [*self.failed.values(), *sorted(compacted, key=_rank)],
            self.done.values(),
            partitions_compacted=len(compacted),
            partitions_failed=len(self.failed),
            partitions_left=self.left,
            changelog_files=self.changelog_files,
            snapshots=tuple(self.snapshots),
            **manifest_counts(self.manifests),
        )

    @property
    def metrics(self) -> Metrics:
        """The metrics of the operation."""
        return replace(metrics_of(self.done.values()), attempts=self.rounds)

    def _add(self, key: str, partition: CompactedPartition) -> None:
        before = self.done.get(key)
        self.done[key] = partition if before is None else before.plus(partition)


def manifest_counts(record: ManifestRecord | None) -> dict[str, int]:
    """The fields of a report about manifests."""
    if record is None:
        return {}
    return {
        "manifests_before": record.before,
        "manifests_after": record.after,
        "deletes_removed": record.deletes_removed,
    }


def report_of(
    named: Sequence[CompactedPartition], counted: Iterable[CompactedPartition], **fields: object
) -> CompactionReport:
    """A report that names partitions, with the sums of those ``counted``."""
    report = replace(CompactionReport(**fields), partitions=tuple(named[:_NAMED]))  # type: ignore[arg-type]
    total = CompactedPartition({})
    for each in counted:
        total = total.plus(each)
    return replace(report, **{name: getattr(total, name) for name in PARTITION_COUNTS})


def metrics_of(partitions: Iterable[CompactedPartition]) -> Metrics:
    """The metrics of what was done in partitions."""
    compacted = list(partitions)
    return Metrics(
        carried=sum(each.rows for each in compacted),
        partitions_changed=sum(bool(each.values) for each in compacted),
        files_added=sum(each.files_after for each in compacted),
        files_removed=sum(each.files_before for each in compacted),
        files_rewritten=sum(each.files_before for each in compacted),
        bytes_added=sum(each.bytes_after for each in compacted),
        bytes_removed=sum(each.bytes_before for each in compacted),
    )


def _rank(partition: CompactedPartition) -> tuple[int, int]:
    """The order of partitions in a report: the worst first."""
    return partition.files_after - partition.files_before, -partition.bytes_before
