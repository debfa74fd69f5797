"""The tasks of the located and the prepared plan: each reads a target file and changes it.

They join its rows with the source rows that have their keys, feed the sink, and note which source
rows matched. In the prepared plan nothing is evaluated, and no row goes through the JVM. Imported
by executors: nothing here needs a table library.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.engine.merge.source_lookup import SourceLookup
from spark_jobs.engine.write.change_writer import ChangeWriter, TaskReport
from spark_jobs.engine.write.recorder import OLD_ROW
from spark_jobs.engine.write.task_batches import joined
from spark_jobs.spi import rows

if TYPE_CHECKING:
    from pyspark.sql import Row

    from spark_jobs.spi.arrow_tasks import ArrowFunction


# A field of the row id: the number of the source row.
SOURCE_ROW: Final = f"{rows.RESERVED_PREFIX}source_row"

# The most rows in a batch for the JVM, and about their most bytes: a long row may have many pairs,
# and Arrow overruns memory where it copies more than 2 GiB of text.
_MOST_ROWS: Final = 16_384
_MOST_BYTES: Final = 64 * 1024 * 1024
_VALUE_BYTES: Final = 16
LOCATED_SCHEMA: Final = "report string, pairs bigint, sources binary"
_Marks = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class LookupJoin:
    """A function for ``map_tasks`` that wraps ``scan``, whose last column is the row id. Picklable.

    ``keys`` are the indices of the target's key columns, in the order of the lookup's.
    """

    scan: ArrowFunction
    keys: tuple[int, ...]
    lookup: SourceLookup

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read target rows and look their keys up.

        Yields:
            The target's columns, the row id with ``SOURCE_ROW`` as its last field, and the source's
            columns, named ``c0``, ``c1`` …; pairs of a target row are neighbours.
        """
        lookup = self.lookup.opened()
        source_bytes = _longest_row(lookup.rows)
        for batch in self.scan(batches):
            codes = lookup.codes([batch.column(index) for index in self.keys])
            pair_bytes = source_bytes + _longest_row(batch)
            most = max(1, min(_MOST_ROWS, _MOST_BYTES // max(pair_bytes, 1)))
            for target, source in lookup.pairs(codes, most):
                of_target = batch.take(pa.array(target)).columns
                numbers = pa.array(source)
                pair = _with_source_row(of_target[-1], numbers)
                of_source = lookup.rows.take(numbers).columns
                arrays = [*of_target[:-1], pair, *of_source]
                yield pa.RecordBatch.from_arrays(arrays, [f"c{i}" for i in range(len(arrays))])


def _with_source_row(row_id: pa.StructArray, numbers: pa.Array) -> pa.StructArray:
    names = [*(field.name for field in row_id.type), SOURCE_ROW]
    return pa.StructArray.from_arrays([*row_id.flatten(), numbers], names)


def _longest_row(batch: pa.RecordBatch) -> int:
    """The most bytes that a row may have."""
    return sum(map(_longest_value, batch.columns))


def _longest_value(column: pa.Array) -> int:
    kind = column.type
    if pa.types.is_struct(kind):
        return sum(map(_longest_value, column.flatten()))
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        elements = [column.keys, column.items] if pa.types.is_map(kind) else [column.values]
        most = int(np.diff(column.offsets.to_numpy()).max(initial=0))
        return most * sum(map(_longest_value, elements))
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pc.max(pc.binary_length(column)).as_py() or 0
    return _VALUE_BYTES


@dataclass(frozen=True, slots=True)
class LocatedReport:
    """What one task did, and how many ``pairs`` ON joined in it.

    ``packed``: the source rows that were among them, as compressed bits, because there may be many
    tasks.
    """

    report: TaskReport
    pairs: int
    packed: bytes

    @classmethod
    def of(cls, row: Row) -> LocatedReport:
        """The report from a row of ``LOCATED_SCHEMA``."""
        return cls(TaskReport.from_json(row["report"]), row["pairs"], bytes(row["sources"]))

    def sources(self, count: int) -> _Marks:
        """Which of the lookup's ``count`` source rows matched."""
        packed = np.frombuffer(zlib.decompress(self.packed), np.uint8)
        return np.unpackbits(packed, count=count).astype(np.bool_)


@dataclass(frozen=True, slots=True)
class LocatedWriter:
    """A function for ``mapInArrow``: takes change rows, yields one report. Picklable.

    A change row comes for every pair that ON joins, with ``SOURCE_ROW`` in its row id, and the
    operation -1 if no clause applies. ``writer`` gets them without, and only under the ``strict``
    cardinality rule those with -1. ``source_rows`` is the number of all.
    """

    writer: ChangeWriter
    strict: bool
    source_rows: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Store the change rows of a task.

        Yields:
            One row of ``LOCATED_SCHEMA``.
        """
        seen = _Seen(np.zeros(self.source_rows, np.bool_))
        changes = self._changes(batches, seen)
        texts = [report.column(0)[0].as_py() for report in self.writer(changes)]
        sources = zlib.compress(np.packbits(seen.sources).tobytes(), 1)
        yield pa.RecordBatch.from_pydict(
            {
                "report": [texts[0] if texts else TaskReport().to_json()],
                "pairs": [seen.pairs],
                "sources": pa.array([sources], pa.binary()),
            }
        )

    def _changes(self, batches: Iterable[pa.RecordBatch], seen: _Seen) -> Iterator[pa.RecordBatch]:
        names = list(self.writer.columns)
        for batch in joined(batches):
            named = batch.rename_columns(names)
            row_id = named.column(rows.ROW_ID)
            seen.note(row_id.field(SOURCE_ROW))
            changes = named.set_column(names.index(rows.ROW_ID), rows.ROW_ID, _plain(row_id))
            if not self.strict:
                operations = changes.column(rows.OPERATION).to_numpy(zero_copy_only=False)
                changes = changes.filter(pa.array(operations != rows.NO_OPERATION))
            yield changes


@dataclass(slots=True)
class _Seen:
    sources: _Marks
    pairs: int = field(default=0)

    def note(self, numbers: pa.Array) -> None:
        self.sources[numbers.to_numpy(zero_copy_only=False)] = True
        self.pairs += len(numbers)


def _plain(row_id: pa.StructArray) -> pa.StructArray:
    """The row id as the connector made it."""
    fields = [each for each in row_id.type if each.name != SOURCE_ROW]
    arrays = [row_id.field(each.name) for each in fields]
    return pa.StructArray.from_arrays(arrays, fields=fields)


@dataclass(frozen=True, slots=True)
class PreparedChanges:
    """A function for ``map_tasks``: changes the files of each task. Picklable.

    ``join`` yields exactly the pairs that ON joins; it reads nothing of the target but the columns
    ``target``: its keys, and the ``recorded`` ones. Its source rows are change rows without row
    ids: operation, case number and assigned columns.
    """

    join: LookupJoin
    target: tuple[str, ...]
    recorded: tuple[str, ...]
    writer: LocatedWriter

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Change the files of the tasks whose numbers are in the only column.

        Yields:
            As ``LocatedWriter``.
        """
        yield from self.writer(self._change_rows(batches))

    def _change_rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        columns = list(self.writer.writer.columns)
        places = [self.target.index(name) for name in self.recorded]
        for pairs in self.join(batches):
            row_id, operation, case_number, *values = pairs.columns[len(self.target) :]
            whole = pa.array(np.zeros(pairs.num_rows, np.bool_))
            arrays = [operation, case_number, row_id, whole, *values]
            if places:
                old = [pairs.column(place) for place in places]
                arrays.append(pa.StructArray.from_arrays(old, list(self.recorded)))
            yield pa.RecordBatch.from_arrays(arrays, columns)


def columns_of(assigned: Iterable[str], *, records: bool = False) -> tuple[str, ...]:
    """The columns of the change rows, the last of which are ``assigned``, and then the old row."""
    columns = (rows.OPERATION, rows.CASE_NUMBER, rows.ROW_ID, rows.FROM_UPDATE, *assigned)
    return (*columns, OLD_ROW) if records else columns
