"""The executor side of the engine: checks the change rows of one task and feeds the sink.

Imported by executors: nothing here needs a table library.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.engine.runtime.tasks import task_key
from spark_jobs.engine.write.cardinality import CardinalityCheck, KeyCheck
from spark_jobs.engine.write.change_counts import ChangeCounts, Placement
from spark_jobs.engine.write.recorder import Recording
from spark_jobs.engine.write.task_batches import joined
from spark_jobs.engine.write.text_check import Path, TextCheck
from spark_jobs.errors import DataError, ErrorCode
from spark_jobs.spi import rows
from spark_jobs.spi.writes import Fragment

if TYPE_CHECKING:
    from spark_jobs.spi.sinks import MergeSink, MergeSinkFactory


REPORT_SCHEMA = "report string"
log = logging.getLogger("airflow_provider_merge.job")


@dataclass(slots=True)
class TaskReport:
    """What one sink task did: counts of target rows by outcome, and its fragments.

    ``recorded``: the names of the files in which it recorded what it changed, if it was asked to.
    """

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    fragments: list[Fragment] = field(default_factory=list)
    counts: ChangeCounts = field(default_factory=ChangeCounts)
    recorded: list[str] = field(default_factory=list)

    def to_json(self) -> str:
        """The report as JSON text."""
        return json.dumps(
            {
                "inserted": self.inserted,
                "updated": self.updated,
                "deleted": self.deleted,
                "fragments": [asdict(fragment) for fragment in self.fragments],
                "counts": self.counts.to_document(),
                "recorded": self.recorded,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> TaskReport:
        """The report from the JSON text that ``to_json`` returned."""
        document = json.loads(text)
        fragments = [Fragment.from_json(json.dumps(each)) for each in document.pop("fragments")]
        counts = ChangeCounts.from_document(document.pop("counts"))
        return cls(**document, fragments=fragments, counts=counts)

    def to_batch(self) -> pa.RecordBatch:
        """One row with the column ``report`` (string), as ``REPORT_SCHEMA``."""
        return pa.RecordBatch.from_pydict({"report": [self.to_json()]})

    def count(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a checked batch; a split UPDATE counts once, by its INSERT half."""
        operation = batch.column(rows.OPERATION)
        split = batch.column(rows.FROM_UPDATE)
        is_insert = pc.equal(operation, rows.INSERT)
        self.inserted += _true(pc.and_(is_insert, pc.invert(split)))
        self.updated += _true(pc.or_(pc.equal(operation, rows.UPDATE), pc.and_(is_insert, split)))
        self.deleted += _true(pc.and_(pc.equal(operation, rows.DELETE), pc.invert(split)))


@dataclass(frozen=True, slots=True)
class ChangeWriter:
    """A function for ``mapInArrow``: takes change rows, yields one ``TaskReport``. Picklable.

    ``not_null`` are the table's NOT NULL columns; ``assigned_columns`` and ``on_columns`` are as in
    ``MergeWrite``; ``labels`` name the cases in errors; ``given_values`` is as in ``TextCheck``.
    ``allows_repeated_matches``: repeated DELETEs of a row count as one DELETE. ``key_columns`` are
    those of the table, whose rows come in their order. ``placement``: count rows by partition, too.
    ``recording``: record what is changed; incoming columns then have the old rows.
    ``columns`` are the names of the incoming columns, which the plan fills in.
    """

    sinks: MergeSinkFactory
    not_null: tuple[str, ...]
    assigned_columns: tuple[tuple[str, ...], ...]
    on_columns: tuple[str, ...]
    labels: tuple[str, ...]
    given_values: Mapping[Path, frozenset[int]]
    allows_repeated_matches: bool
    key_columns: tuple[str, ...] = ()
    placement: Placement | None = None
    recording: Recording | None = None
    columns: tuple[str, ...] = ()

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Store all change rows of a task.

        Yields:
            One row with the column ``report`` (string): a ``TaskReport`` as JSON. Nothing for a
            task without change rows.
        """
        report = TaskReport()
        text = TextCheck(self.labels, self.given_values)
        sink: MergeSink | None = None
        records = self.recording.opened(task_key()) if self.recording else nullcontext()
        with task_sinks(self.sinks) as sinks, records as recorder:
            for batch in joined(batches):
                named = batch.rename_columns(list(self.columns))
                if sink is None:
                    sink = sinks.open(task_key())
                    check = CardinalityCheck(sink, self.on_columns, self.allows_repeated_matches)
                    keys = KeyCheck(self.key_columns, self.labels)
                checked = check.checked(named)
                if recorder is not None:
                    checked = recorder.taken(checked)
                self._require_not_null(checked)
                text.require(checked)
                keys.require_different(checked)
                report.count(checked)
                report.counts.count(checked, self.placement)
                if checked.num_rows:
                    sink.store_merged_rows(checked)
            report.fragments = sinks.finish()
        if sink is not None:
            report.recorded = recorder.files if recorder is not None else []
            yield report.to_batch()

    def _require_not_null(self, batch: pa.RecordBatch) -> None:
        operation = batch.column(rows.OPERATION)
        case_number = batch.column(rows.CASE_NUMBER)
        for name in self.not_null:
            if name not in batch.schema.names:
                continue
            assigning = [n for n, names in enumerate(self.assigned_columns) if name in names]
            updated = pc.is_in(case_number, pa.array(assigning, pa.int32()))
            written = pc.or_(
                pc.equal(operation, rows.INSERT), pc.and_(pc.equal(operation, rows.UPDATE), updated)
            )
            wrong = pc.and_(written, pc.is_null(batch.column(name)))
            if _true(wrong):
                label = self.labels[case_number.filter(wrong)[0].as_py()]
                raise DataError(
                    ErrorCode.NOT_NULL_VIOLATION,
                    f"column {name} is NOT NULL, but {label} would store NULL",
                    "Give it a value, or filter such rows out.",
                )


def _true(mask: pa.BooleanArray) -> int:
    return int(mask.true_count)


@dataclass(frozen=True, slots=True)
class TaskSinks:
    """Opens sinks as needed, and finishes or aborts all of them."""

    factory: MergeSinkFactory
    opened: list[MergeSink] = field(default_factory=list)
    unfinished: list[MergeSink] = field(default_factory=list)
    fragments: list[Fragment] = field(default_factory=list)

    def open(self, key: str) -> MergeSink:
        """A new sink; ``key`` as in ``MergeSinkFactory.open``."""
        sink = self.factory.open(key)
        self.opened.append(sink)
        self.unfinished.append(sink)
        return sink

    def finish_early(self, sink: MergeSink) -> None:
        """Finish one that gets no more rows."""
        self.unfinished.remove(sink)
        self.fragments.extend(sink.finish())

    def finish(self) -> list[Fragment]:
        """Finish the other sinks, and return what all of them wrote."""
        for sink in list(self.unfinished):
            self.finish_early(sink)
        return self.fragments

    def abort(self) -> None:
        """Abort all sinks; the driver removes what a sink fails to remove."""
        for sink in self.opened:
            try:
                sink.abort()
            except Exception as error:  # noqa: BLE001 - why the task failed matters more
                log.warning("a sink could not remove its files: %s", error)


@contextmanager
def task_sinks(factory: MergeSinkFactory) -> Iterator[TaskSinks]:
    """The sinks of a task; a failure in the block aborts them."""
    sinks = TaskSinks(factory)
    try:
        yield sinks
    except BaseException:
        sinks.abort()
        raise
