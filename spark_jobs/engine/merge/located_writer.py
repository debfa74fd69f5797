"""The end of a task of the located plan: feeds the sink, and notes which source rows matched.

Imported by executors: nothing here needs a table library.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_jobs.engine.merge.lookup_join import SOURCE_ROW
from spark_jobs.engine.write.change_writer import ChangeWriter, TaskReport
from spark_jobs.engine.write.joined_batches import joined
from spark_jobs.spi import rows

if TYPE_CHECKING:
    from pyspark.sql import Row

LOCATED_SCHEMA: Final = "report string, pairs bigint, sources binary"

Marks = npt.NDArray[np.bool_]


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

    def sources(self, count: int) -> Marks:
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
    sources: Marks
    pairs: int = field(default=0)

    def note(self, numbers: pa.Array) -> None:
        self.sources[numbers.to_numpy(zero_copy_only=False)] = True
        self.pairs += len(numbers)


def _plain(row_id: pa.StructArray) -> pa.StructArray:
    """The row id as the connector made it."""
    fields = [each for each in row_id.type if each.name != SOURCE_ROW]
    arrays = [row_id.field(each.name) for each in fields]
    return pa.StructArray.from_arrays(arrays, fields=fields)
