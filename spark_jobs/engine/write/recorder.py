"""Records what sink tasks change: old and new rows, in files beside the run's other scratch files.

Only files that successful tasks report are read, so what failed and speculative attempts record
does not count. Imported by executors: nothing here needs a table library.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from spark_jobs.engine.runtime.lease import Lease
from spark_jobs.engine.runtime.spill import Spill
from spark_jobs.spi import rows
from spark_jobs.storage.files import remove_folder

# The column of change rows with the recorded columns of the old row, as a struct in their order.
OLD_ROW: Final = f"{rows.RESERVED_PREFIX}old_row"

# The columns of the files; those of old and new rows are numbered as the table's columns are, those
# of row ids as its fields.
OPERATION: Final = "operation"
CASE: Final = "case_number"
SPLIT: Final = "split"
ROW_ID: Final = "id"
OLD: Final = "old"
NEW: Final = "new"
_OPERATIONS: Final = (rows.INSERT, rows.UPDATE, rows.DELETE)


def numbered(kind: str, index: int) -> str:
    """The name of a numbered column."""
    return f"{kind}_{index}"


@dataclass(frozen=True, slots=True)
class Recording:
    """Where and what the tasks of a run record. Picklable.

    ``old`` and ``new`` are the table columns whose values are kept of old and new rows, by name,
    with their numbers. ``with_row_ids``: those of old rows, too. ``most_rows``: of each operation,
    a task records so many rows at most; None: all. ``folder`` is in ``filesystem``,
    in the scratch folder of the run that holds ``lease``.
    """

    filesystem: pafs.FileSystem
    folder: str
    lease: Lease
    old: Mapping[str, int]
    new: Mapping[str, int]
    with_row_ids: bool = False
    most_rows: int | None = None

    @contextmanager
    def opened(self, task_key: str) -> Iterator[Recorder]:
        """The recorder of one task attempt; its file is whole behind the block."""
        name = f"{task_key}.parquet"
        try:
            with Spill(self.filesystem, f"{self.folder}/{name}") as spill:
                yield Recorder(self, spill, name)
        finally:
            if not self.lease.is_held():
                remove_folder(self.filesystem, self.folder)


@dataclass(slots=True)
class Recorder:
    """Records the change rows of one task."""

    recording: Recording
    spill: Spill
    name: str
    files: list[str] = field(default_factory=list)
    _taken: Counter[int] = field(default_factory=Counter)

    def taken(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Record checked change rows; return them without ``OLD_ROW``, as sinks take them."""
        self._record(batch)
        kept = [name for name in batch.schema.names if name != OLD_ROW]
        return batch.select(kept)

    def _record(self, batch: pa.RecordBatch) -> None:
        if not self.recording.with_row_ids:
            batch = _without_halves(batch)
        if self.recording.most_rows is not None:
            batch = self._first(batch, self.recording.most_rows)
        if not batch.num_rows:
            return
        self.files = [self.name]
        columns = {
            OPERATION: batch.column(rows.OPERATION),
            CASE: batch.column(rows.CASE_NUMBER),
            SPLIT: batch.column(rows.FROM_UPDATE),
        }
        names = batch.schema.names
        row_id = batch.column(rows.ROW_ID)
        if self.recording.with_row_ids and pa.types.is_struct(row_id.type):
            columns |= _parts(ROW_ID, row_id, range(row_id.type.num_fields))
        if OLD_ROW in names:
            columns |= _parts(OLD, batch.column(OLD_ROW), self.recording.old.values())
        for name, number in self.recording.new.items():
            if name in names:
                columns[numbered(NEW, number)] = batch.column(name)
        self.spill.add(pa.RecordBatch.from_arrays(list(columns.values()), list(columns)))

    def _first(self, batch: pa.RecordBatch, most: int) -> pa.RecordBatch:
        """The rows of ``batch`` that are among the first ``most`` of their operation."""
        if all(self._taken[each] >= most for each in _OPERATIONS):
            return batch.slice(0, 0)
        split, operation = batch.column(rows.FROM_UPDATE), batch.column(rows.OPERATION)
        operation = pc.if_else(split, pa.scalar(rows.UPDATE, operation.type), operation)
        row_numbers: list[int] = []
        for kind in _OPERATIONS:
            places = pc.indices_nonzero(pc.equal(operation, kind))
            chosen = places.slice(0, most - self._taken[kind]).to_pylist()
            self._taken[kind] += len(chosen)
            row_numbers += chosen
        return batch.take(pa.array(sorted(row_numbers), pa.int64()))


def _without_halves(batch: pa.RecordBatch) -> pa.RecordBatch:
    """``batch`` without the DELETE halves of split UPDATEs: the INSERT halves have both rows."""
    is_delete = pc.equal(batch.column(rows.OPERATION), rows.DELETE)
    is_half = pc.and_(is_delete, batch.column(rows.FROM_UPDATE))
    return batch if is_half.true_count == 0 else batch.filter(pc.invert(is_half))


def _parts(kind: str, struct: pa.StructArray, numbers: Iterable[int]) -> dict[str, pa.Array]:
    """The fields of structs, NULL where the struct is."""
    parts = zip(numbers, struct.flatten(), strict=True)
    return {numbered(kind, number): part for number, part in parts}


def with_old_rows(
    batch: pa.RecordBatch, values: Sequence[pa.Array], columns: Iterable[str]
) -> pa.RecordBatch:
    """``batch`` of DELETE rows with ``OLD_ROW``: the ``values`` of the recorded ``columns``."""
    if not values:
        return batch
    return batch.append_column(OLD_ROW, pa.StructArray.from_arrays(values, list(columns)))
