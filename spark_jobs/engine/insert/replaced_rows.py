"""Deletes those rows of files that belong to replaced partitions; the others stay.

For files of which nobody knows that all of their rows belong to one: those that were partitioned in
an older way. The tasks that read a file also change it.

Imported by executors: nothing here needs a table library.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_jobs.engine.analysis.partition_values import comparable
from spark_jobs.engine.runtime.tasks import task_key
from spark_jobs.engine.write.change_counts import Placement
from spark_jobs.engine.write.change_writer import TaskReport, task_sinks
from spark_jobs.engine.write.expected_partitions import not_expected
from spark_jobs.engine.write.recorder import Recording, with_old_rows
from spark_jobs.engine.write.task_batches import row_codes
from spark_jobs.spi import rows
from spark_jobs.spi.arrow_rows import ArrowRows
from spark_jobs.spi.writes import DerivedColumns

if TYPE_CHECKING:
    from spark_jobs.spi.sinks import MergeSink, MergeSinkFactory

Partition = tuple[Any, ...]
# ``comparable`` values by the name of the field.
Spec = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReplacedPartitions:
    """The partitions whose rows go: those of one of ``specs`` that are ``occurring``. Picklable.

    ``fields`` are the names of the table's partition fields. ``occurring`` None: all. Only those of
    a spec in ``expected`` may change; None: any.
    """

    fields: tuple[str, ...]
    specs: tuple[Spec, ...]
    occurring: frozenset[Partition] | None
    expected: tuple[Spec, ...] | None

    def matching(self, partition: Partition) -> list[int]:
        """The specs to which a partition belongs whose rows go; none if they stay.

        Raises:
            DataError: PARTITION_NOT_EXPECTED.
        """
        key = tuple(map(comparable, partition))
        if self.occurring is not None and key not in self.occurring:
            return []
        values = dict(zip(self.fields, key, strict=True))
        matching_specs = [number for number, spec in enumerate(self.specs) if _fits(values, spec)]
        is_expected = self.expected is None or any(_fits(values, each) for each in self.expected)
        if matching_specs and not is_expected:
            raise not_expected(dict(zip(self.fields, partition, strict=True)))
        return matching_specs


def _fits(values: Mapping[str, Any], spec: Spec) -> bool:
    return all(values[name] == value for name, value in spec.items())


@dataclass(slots=True)
class ReplacedReport:
    """What one task did, and the indexes of the specs to which deleted rows belonged."""

    report: TaskReport = field(default_factory=TaskReport)
    specs: set[int] = field(default_factory=set)

    def to_batch(self) -> pa.RecordBatch:
        """One row with the column ``report`` (string), as ``REPORT_SCHEMA``."""
        text = json.dumps([self.report.to_json(), sorted(self.specs)])
        return pa.RecordBatch.from_pydict({"report": [text]})

    @classmethod
    def from_json(cls, text: str) -> ReplacedReport:
        """The report from the text that ``to_batch`` made."""
        report, specs = json.loads(text)
        return cls(TaskReport.from_json(report), set(specs))


@dataclass(frozen=True, slots=True)
class ReplacedRows:
    """A function for ``mapInArrow``: takes task numbers, yields one report for each. Picklable.

    ``rows`` has the columns that ``derived`` takes, in that order, then others, then the row id;
    the first columns that it makes are those of the partition fields. ``columns`` are the names of
    all but the row id. ``placement``: count rows by file. ``recording``: record the rows that go.
    """

    rows: ArrowRows
    derived: DerivedColumns
    partitions: ReplacedPartitions
    sinks: MergeSinkFactory
    placement: Placement | None = None
    columns: tuple[str, ...] = ()
    recording: Recording | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Delete the rows of a task.

        Yields:
            One row with the column ``report`` (string): a ``ReplacedReport`` as JSON.
        """
        yield self.stored(batches, task_key).to_batch()

    def stored(self, batches: Iterable[pa.RecordBatch], key: Callable[[], str]) -> ReplacedReport:
        """The same, with a report; ``key`` names the task, as for ``MergeSinkFactory``."""
        replaced = ReplacedReport()
        sink: MergeSink | None = None
        records = self.recording.opened(key()) if self.recording else nullcontext()
        with task_sinks(self.sinks) as sinks, records as recorder:
            for batch in self.rows.function(batches):
                chosen = self._chosen(batch, replaced.specs) if batch.num_rows else None
                if chosen is None or not chosen.any():
                    continue
                if sink is None:
                    sink = sinks.open(key())
                ids = batch.column(batch.num_columns - 1).filter(pa.array(chosen))
                changes = _deletes(ids)
                if recorder is not None:
                    recorder.taken(self._with_old_rows(changes, batch.filter(pa.array(chosen))))
                sink.store_merged_rows(changes)
                replaced.report.deleted += len(ids)
                replaced.report.counts.count(changes, self.placement)
            replaced.report.fragments = sinks.finish()
        replaced.report.recorded = recorder.files if recorder is not None else []
        return replaced

    def _with_old_rows(self, changes: pa.RecordBatch, old: pa.RecordBatch) -> pa.RecordBatch:
        wanted = self.recording.old if self.recording else {}
        values = [old.column(self.columns.index(name)) for name in wanted]
        return with_old_rows(changes, values, wanted)

    def _chosen(self, batch: pa.RecordBatch, specs: set[int]) -> npt.NDArray[np.bool_]:
        """Which rows go; adds to ``specs`` those to which they belong."""
        names = list(self.derived.inputs)
        sources = pa.RecordBatch.from_arrays(batch.columns[: len(names)], names)
        fields = self.derived.function(sources)[: len(self.partitions.fields)]
        partitions, codes = distinct_partitions(fields)
        matching_specs = [self.partitions.matching(each) for each in partitions]
        specs.update(number for each in matching_specs for number in each)
        return np.array([bool(each) for each in matching_specs], dtype=np.bool_)[codes]


def distinct_partitions(
    columns: Sequence[pa.Array],
) -> tuple[list[Partition], npt.NDArray[np.int64]]:
    """The distinct rows of ``columns`` as Python values, and the number of each row's."""
    encoded = [each.dictionary_encode(null_encoding="encode") for each in columns]
    codes = row_codes(encoded, len(columns[0]))
    _, first = np.unique(codes, return_index=True)
    values = [_python_values(each.dictionary) for each in encoded]
    numbers = [each.indices.to_numpy() for each in encoded]
    found = [
        tuple(known[index[place]] for known, index in zip(values, numbers, strict=True))
        for place in first.tolist()
    ]
    return found, codes


def _python_values(array: pa.Array) -> list[Any]:
    try:
        found: list[Any] = array.to_pylist()
    except (OverflowError, ValueError):
        return [_python_value(each) for each in array]
    return found


def _python_value(scalar: pa.Scalar) -> Any:
    """The value; of a time that Python does not have, something that equals no other value."""
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        return (scalar.value,)


def _deletes(ids: pa.Array) -> pa.RecordBatch:
    """DELETE rows, which ``spi.rows`` describes."""
    count = len(ids)
    columns = {
        rows.OPERATION: pa.array(np.full(count, rows.DELETE, np.int8)),
        rows.CASE_NUMBER: pa.array(np.zeros(count, np.int32)),
        rows.ROW_ID: ids,
        rows.FROM_UPDATE: pa.array(np.zeros(count, np.bool_)),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def specs_of(specs: Iterable[Mapping[str, Any]]) -> tuple[Spec, ...]:
    """Values by field as ``ReplacedPartitions`` has them."""
    return tuple({name: comparable(value) for name, value in spec.items()} for spec in specs)
