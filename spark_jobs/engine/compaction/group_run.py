"""One group of partitions: its parts compacted by tasks, then published as one snapshot."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import SparkSession

from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.engine.compaction.part_tasks import OUTCOME_SCHEMA, PartOutcome, PartTasks
from spark_jobs.engine.runtime.failures import translated
from spark_jobs.engine.runtime.lease import Lease
from spark_jobs.engine.runtime.progress import Progress
from spark_jobs.engine.runtime.query_status import wait_for_stragglers
from spark_jobs.errors import ErrorCode, InternalError, JobError
from spark_jobs.packing import scan_tasks
from spark_jobs.spi.arrow_tasks import map_tasks
from spark_jobs.spi.compaction import (
    CompactionGroup,
    ConnectorCompaction,
    GroupCommit,
    PartCompactor,
    PartResult,
    PublishedGroup,
    PublishedParts,
)
from spark_jobs.spi.tables import TableHandle

if TYPE_CHECKING:
    from spark_jobs.engine.compaction.tally import GroupRecords

_BYTES_PER_TASK: Final = 2**30
# So many that tasks of different sizes spread evenly over the cores.
_TASKS_PER_CORE: Final = 4


@dataclass(frozen=True, slots=True)
class GroupOutcome:
    """What became of a group; ``failed`` says why partitions, by key, were left as they are."""

    published: PublishedGroup
    failed: Mapping[str, JobError]


@dataclass(frozen=True, slots=True)
class GroupRuns:
    """Runs the groups of plans; each group has a lease of its own in the run's folder.

    ``require_wanted`` raises a JobError once the run is given up.
    """

    spark: SparkSession
    compaction: ConnectorCompaction
    spec: CompactSpec
    operation_id: str
    lease: Lease
    require_wanted: Callable[[], None]
    progress: Progress

    def run(
        self,
        table: TableHandle,
        group: CompactionGroup,
        name: str,
        records: GroupRecords,
    ) -> GroupOutcome:
        """Compact a group of a plan for ``table``; ``name`` is unique in this run.

        Raises:
            CommitError: COMMIT_CONFLICT: the plan does not fit the table any more;
                COMMIT_OUTCOME_UNKNOWN; RUN_GIVEN_UP.
            JobError: whatever else is wrong with the whole group. Except after
                COMMIT_OUTCOME_UNKNOWN, nothing of it is left.
        """
        compactor = self.compaction.compactor(table, self.spec)
        with self.progress.phase("compact"):
            results = self._compacted(table, group, name, compactor)
        failed: dict[str, JobError] = {}
        for result in results:
            if result.error is not None:
                failed.setdefault(result.part.partition, result.error)
        left = [result for result in results if result.part.partition in failed]
        for result in left:
            compactor.discard(result.fragments)
        succeeded = [result for result in results if result.part.partition not in failed]
        if not succeeded:
            return GroupOutcome(PublishedGroup(None, frozenset(), PublishedParts({})), failed)
        commit = GroupCommit(self.operation_id, records.properties, self.require_wanted)
        with self.progress.phase("commit"):
            return GroupOutcome(self._published(table, succeeded, commit, compactor), failed)

    def _compacted(
        self, table: TableHandle, group: CompactionGroup, name: str, compactor: PartCompactor
    ) -> list[PartResult]:
        """The results of all parts; if a task fails, no file of the group is left."""
        self.lease.require()
        lease = Lease(self.lease.filesystem, f"{self.lease.scratch}/{name}")
        lease.take()
        tasks = self._tasks(group)
        function = PartTasks(compactor, tasks, lease)
        try:
            rows = map_tasks(self.spark, len(tasks), function, OUTCOME_SCHEMA).collect()
            # Other attempts of tasks, if they still run, leave nothing.
            lease.end()
            return _results(group, [PartOutcome.of(*row) for row in rows])
        except BaseException as error:
            with self._cleaning_up():
                lease.end()
            with self._cleaning_up():
                wait_for_stragglers(self.spark)
            with self._cleaning_up():
                self.compaction.abandon(table, compactor)
            if isinstance(error, Exception):
                raise translated(error) from error
            raise

    def _tasks(self, group: CompactionGroup) -> tuple[tuple[Any, ...], ...]:
        """The parts of each task, such that all tasks have about the same number of bytes."""
        sizes = {index: part.size for index, part in enumerate(group.parts)}
        cores: int = self.spark.sparkContext.defaultParallelism
        wanted = max(_TASKS_PER_CORE * cores, math.ceil(sum(sizes.values()) / _BYTES_PER_TASK))
        tasks = scan_tasks(sizes, wanted)
        return tuple(tuple(group.parts[index] for index in task) for task in tasks)

    def _published(
        self,
        table: TableHandle,
        results: Sequence[PartResult],
        commit: GroupCommit,
        compactor: PartCompactor,
    ) -> PublishedGroup:
        try:
            return self.compaction.publish(table, results, commit)
        except JobError as error:
            if error.code is not ErrorCode.COMMIT_OUTCOME_UNKNOWN:
                with self._cleaning_up():
                    for result in results:
                        compactor.discard(result.fragments)
            raise

    @contextmanager
    def _cleaning_up(self) -> Iterator[None]:
        """Only log errors of the block, which cleans up after a failure that matters more."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - of the storage, of Spark or of the connector
            self.progress.say(f"cleaning up failed, so files may be left: {error}")


def _results(group: CompactionGroup, outcomes: Sequence[PartOutcome]) -> list[PartResult]:
    """The result of each part of the group.

    Raises:
        InternalError: a part has no outcome, or several.
    """
    parts = {part.number: part for part in group.parts}
    if sorted(outcome.part for outcome in outcomes) != sorted(parts):
        raise InternalError(
            ErrorCode.INTERNAL_ERROR,
            "The tasks of a compaction did not return each of its parts once.",
            "This is a defect: report it with the statement.",
        )
    return [PartResult(parts[each.part], each.fragments, each.error) for each in outcomes]
