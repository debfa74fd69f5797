"""The rounds of a compaction: plan, run the groups, plan again where others were faster."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spark_jobs.contract.compaction import CompactedPartition, CompactSpec
from spark_jobs.contract.compaction_record import ManifestRecord
from spark_jobs.contract.partition_names import partition_key
from spark_jobs.contract.properties import metrics_property
from spark_jobs.contract.request import TableName
from spark_jobs.contract.sizes import parse_size
from spark_jobs.contract.sql_text import sql_conditions
from spark_jobs.engine.analysis.partition_specs import Constants, belongs
from spark_jobs.engine.compaction.group_run import GroupRuns
from spark_jobs.engine.compaction.tally import GroupRecords, Tally, metrics_of
from spark_jobs.engine.runtime.back_off import ATTEMPTS, back_off
from spark_jobs.engine.runtime.collector import paused_collector
from spark_jobs.errors import CommitError, ErrorCode, JobError
from spark_jobs.spi.compaction import (
    CompactionGroup,
    CompactionPlan,
    ManifestCommit,
    WantedPartition,
)
from spark_jobs.spi.connector import ConnectorMetadata
from spark_jobs.spi.tables import TableHandle


@dataclass(frozen=True, slots=True)
class CompactionRun:
    """One try of a compaction; ``common`` are the properties of all its snapshots."""

    metadata: ConnectorMetadata
    groups: GroupRuns
    wanted: WantedPartitions
    tally: Tally
    common: Mapping[str, str]

    def run(self, table: TableHandle) -> None:
        """Compact what is wanted, from ``table`` on, and count it in ``tally``.

        Raises:
            JobError: the table cannot be planned, or the run was given up.
        """
        plan = self._first_plan(table)
        while True:
            current = _Round(self, table, self.tally.rounds)
            current.run(plan.groups)
            if not current.conflicts or current.number == ATTEMPTS:
                break
            back_off(current.number)
            self.tally.rounds += 1
            table = self.metadata.load_table(table.name)
            unlimited = replace(self.groups.spec, max_bytes=None, max_partitions=None)
            plan = self._plan(table, unlimited, Restricted(self.wanted, set(current.conflicts)))
        for key, expected in current.conflicts.items():
            self.tally.leave(key, expected, _overtaken(table.name))

    def rewrite_manifests(self, table: TableHandle) -> None:
        """Write the manifests of the latest snapshot anew, unless an earlier try has.

        Raises:
            JobError: they cannot be read or published, or the run was given up.
        """
        if self.tally.manifests is not None:
            return
        groups = self.groups

        def properties(record: ManifestRecord) -> dict[str, str]:
            return {**self.common, **metrics_property(metrics_of(())), **record.to_property()}

        commit = ManifestCommit(groups.operation_id, properties, groups.require_wanted)
        groups.compaction.begin(table, groups.operation_id)
        with groups.progress.phase("manifests"), paused_collector():
            self.tally.rewrote(*groups.compaction.rewrite_manifests(table, commit))

    def _first_plan(self, table: TableHandle) -> CompactionPlan:
        """The plan for what earlier tries have left, of the partitions and of the limits."""
        wanted = Restricted(self.wanted, self.tally.complete, excludes=True)
        spec = _within(self.groups.spec, self.tally)
        plan = self._plan(table, spec or self.groups.spec, wanted)
        if spec is None:
            beyond = {part.partition for group in plan.groups for part in group.parts}
            plan = CompactionPlan((), plan.partitions_left + len(beyond))
        self.tally.left = plan.partitions_left
        return plan

    def _plan(
        self, table: TableHandle, spec: CompactSpec, wanted: WantedPartition
    ) -> CompactionPlan:
        with self.groups.progress.phase("plan"), paused_collector():
            return self.groups.compaction.plan(table, spec, wanted)


@dataclass(frozen=True, slots=True)
class _Round:
    """A round; ``conflicts`` are the partitions, by key, that have to be planned again."""

    of: CompactionRun
    table: TableHandle
    number: int
    conflicts: dict[str, CompactedPartition] = field(default_factory=dict)

    def run(self, groups: Sequence[CompactionGroup]) -> None:
        """Run the groups of a plan.

        Raises:
            CommitError: RUN_GIVEN_UP.
        """
        pending = list(groups)
        runs = self.of.groups
        try:
            if pending:
                runs.compaction.begin(self.table, runs.operation_id)
            while pending:
                self._say(pending[0], len(groups) - len(pending) + 1, len(groups))
                self._group(pending[0], pending[1:], f"group-{self.number}-{len(pending)}")
                del pending[0]
        except CommitError as error:
            if error.code is not ErrorCode.COMMIT_CONFLICT:
                raise
            # The plan does not fit the table any more, so the rest of it is void.
            self._warn(error.message)
            for group in pending:
                self.conflicts.update(group.expected)

    def _group(self, group: CompactionGroup, later: Sequence[CompactionGroup], name: str) -> None:
        tally = self.of.tally
        begun = {part.partition for each in later for part in each.parts}
        unfinished = frozenset(begun | self.conflicts.keys() | tally.failed.keys())
        records = GroupRecords(self.of.common, group, unfinished)
        try:
            outcome = self.of.groups.run(self.table, group, name, records)
        except JobError as error:
            if error.code in (ErrorCode.COMMIT_CONFLICT, ErrorCode.RUN_GIVEN_UP):
                raise
            for key, expected in group.expected.items():
                tally.leave(key, expected, error)
            self.of.groups.progress.say(f"a group failed, others go on: {error}")
            return
        published = outcome.published
        if published.snapshot is not None:
            tally.published(published.snapshot, published.done)
        for key, failure in outcome.failed.items():
            tally.leave(key, group.expected[key], failure)
        lost = {
            part.partition: group.expected[part.partition]
            for part in group.parts
            if part.number in published.lost
        }
        if lost:
            self.conflicts.update(lost)
            count = f"{len(lost):,} of {len(group.expected):,} partitions"
            self._warn(f"other writers changed files of {count}")

    def _warn(self, problem: str) -> None:
        self.of.groups.progress.warn(f"conflict in round {self.number} of {ATTEMPTS}: {problem}")

    def _say(self, group: CompactionGroup, number: int, count: int) -> None:
        expected = group.expected.values()
        files = sum(each.files_before for each in expected)
        size = sum(part.size for part in group.parts)
        self.of.groups.progress.say(
            f"group {number} of {count}: {files:,} files, {size:,} bytes in "
            f"{len(group.expected):,} partitions"
        )


def _within(spec: CompactSpec, tally: Tally) -> CompactSpec | None:
    """What earlier tries have left of the limits; None: nothing."""
    if spec.max_bytes is not None:
        size = parse_size(spec.max_bytes) - tally.bytes_read
        if size <= 0:
            return None
        spec = replace(spec, max_bytes=f"{size} b")
    if spec.max_partitions is not None:
        partitions = spec.max_partitions - len(tally.complete)
        if partitions <= 0:
            return None
        spec = replace(spec, max_partitions=partitions)
    return spec


def _overtaken(name: TableName) -> CommitError:
    return CommitError(
        ErrorCode.COMMIT_CONFLICT,
        f"Other writers changed files of {name} during each of {ATTEMPTS} rounds.",
        "Compact the partition when fewer writers are at work on it.",
    )


@dataclass(frozen=True, slots=True)
class WantedPartitions:
    """Implements ``WantedPartition``: the partitions of ``specs``; without any, all.

    ``matched`` collects the indexes of the specs that a partition belongs to.
    """

    specs: Sequence[Constants]
    matched: set[int] = field(default_factory=set)

    def __call__(self, partition: Mapping[str, Any]) -> bool:
        """Whether a partition, as values by column, is to be compacted.

        Files that are in no partition of today have no values: no spec that names any has them.
        """
        matching_specs = [
            index
            for index, spec in enumerate(self.specs)
            if (partition or not spec) and belongs(partition, spec)
        ]
        self.matched.update(matching_specs)
        return bool(matching_specs) or not self.specs

    def warnings(self) -> list[str]:
        """The specs to which no partition belongs, for people."""
        return [
            f"partitions[{index}]: the table has no partition "
            f"{sql_conditions({name: each.value for name, each in spec.items()})}"
            for index, spec in enumerate(self.specs)
            if spec and index not in self.matched
        ]


@dataclass(frozen=True, slots=True)
class Restricted:
    """Implements ``WantedPartition``: those of ``real`` that are among ``keys``.

    ``excludes``: those that are not among them.
    """

    real: WantedPartitions
    keys: Collection[str]
    excludes: bool = False

    def __call__(self, partition: Mapping[str, Any]) -> bool:
        """Whether a partition, as values by column, is to be compacted."""
        is_wanted = self.real(partition)
        return is_wanted and (partition_key(partition) in self.keys) != self.excludes
