"""The tasks that compact the parts of a group. Imported by executors: no table library here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from spark_jobs.engine.runtime.lease import Lease
from spark_jobs.engine.runtime.tasks import task_key
from spark_jobs.errors import JobError, error_in, error_text
from spark_jobs.spi.writes import Fragment

if TYPE_CHECKING:
    from spark_jobs.spi.compaction import CompactionPart, PartCompactor

OUTCOME_SCHEMA: Final = "part int, fragments string, error string"


@dataclass(frozen=True, slots=True)
class PartOutcome:
    """What became of the part with a number: fragments, or an error that only concerns it."""

    part: int
    fragments: tuple[Fragment, ...] = ()
    error: JobError | None = None

    @classmethod
    def of(cls, part: int, fragments: str, error: str) -> PartOutcome:
        """The outcome in a row of ``OUTCOME_SCHEMA``."""
        found = tuple(Fragment.from_json(json.dumps(each)) for each in json.loads(fragments))
        return cls(part, found, error_in(error))

    def to_batch(self) -> pa.RecordBatch:
        """One row, as ``OUTCOME_SCHEMA``."""
        fragments = json.dumps([asdict(fragment) for fragment in self.fragments])
        error = "" if self.error is None else error_text(self.error)
        return pa.RecordBatch.from_arrays(
            [pa.array([self.part], pa.int32()), pa.array([fragments]), pa.array([error])],
            ["part", "fragments", "error"],
        )


@dataclass(frozen=True, slots=True)
class PartTasks:
    """A function for ``map_tasks``: compacts the parts of each of ``tasks``. Picklable.

    A task leaves files only while the ``lease`` exists, and only if it succeeds as a whole.
    """

    compactor: PartCompactor
    tasks: tuple[tuple[CompactionPart, ...], ...]
    lease: Lease

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Compact the parts of the tasks whose numbers are in the only column.

        Yields:
            A row for each part, as ``OUTCOME_SCHEMA``. A part that cannot be compacted has an error
            of its own, and the others go on.

        Raises:
            CommitError: RUN_GIVEN_UP.
        """
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for outcome in self._compacted(self.tasks[number]):
                    yield outcome.to_batch()

    def _compacted(self, parts: Sequence[CompactionPart]) -> list[PartOutcome]:
        outcomes: list[PartOutcome] = []
        try:
            for part in parts:
                self.lease.require()
                outcomes.append(self._outcome(part))
            self.lease.require()
        except BaseException:
            for outcome in outcomes:
                self.compactor.discard(outcome.fragments)
            raise
        return outcomes

    def _outcome(self, part: CompactionPart) -> PartOutcome:
        try:
            key = f"{task_key()}-{part.number}"
            return PartOutcome(part.number, tuple(self.compactor.compact(part.native, key)))
        except JobError as error:
            return PartOutcome(part.number, error=error)
