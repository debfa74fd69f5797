"""Sorts more rows than fit into memory. Runs on executors.

Rows are sorted as many at a time as fill some memory, wait on the local disk, and are merged from
there batch by batch.
"""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from spark_jobs.datafiles.loose_rows import in_order
from spark_jobs.spi.writes import RowOrder, SortKey

_COMPRESSION: Final = "lz4"
# What is read of a run at once, in Arrow bytes.
_BATCH_BYTES: Final = 2**20
# So many runs are merged at once, so that their batches do not fill the memory.
_MOST_RUNS: Final = 64


class SortedRuns:
    """Takes rows in any order, and returns them as ``order`` says; equal rows in any order.

    Rows of ``most_bytes`` in Arrow are sorted at a time. ``folder`` is on the local disk and has no
    other files.
    """

    def __init__(self, order: RowOrder, folder: Path, most_bytes: int) -> None:
        self._order = order
        self._folder = folder
        self._most_bytes = most_bytes
        self._kept: list[pa.Table] = []
        self._kept_bytes = 0
        self._runs: list[Path] = []
        self._stored = 0
        self.row_count = 0

    def add_rows(self, rows: pa.Table) -> None:
        """Take rows; all have the same schema."""
        step = max(1, rows.num_rows * self._most_bytes // max(rows.nbytes, 1))
        for start in range(0, rows.num_rows, step):
            part = rows.slice(start, step)
            self._kept.append(part)
            self._kept_bytes += part.nbytes
            self.row_count += part.num_rows
            if self._kept_bytes >= self._most_bytes:
                self._store(iter([self._sorted()]))

    def rows(self) -> Iterator[pa.Table]:
        """All rows, in order; takes no more afterwards."""
        derived = self._order.derived
        names = [name for name, _ in derived.columns] if derived else []
        for table in self._all_sorted():
            yield table.drop_columns(names)

    def _all_sorted(self) -> Iterator[pa.Table]:
        if self._kept and not self._runs:
            return iter([self._sorted()])
        if self._kept:
            self._store(iter([self._sorted()]))
        while len(self._runs) > _MOST_RUNS:
            first, self._runs = self._runs[:_MOST_RUNS], self._runs[_MOST_RUNS:]
            self._store(_merged(first, self._order.keys))
        return _merged(self._runs, self._order.keys)

    def _sorted(self) -> pa.Table:
        table = pa.concat_tables(self._kept).combine_chunks()
        self._kept, self._kept_bytes = [], 0
        if derived := self._order.derived:
            table = pa.Table.from_batches(map(derived.added_to, table.to_batches()))
        return in_order(table, list(self._order.keys))

    def _store(self, tables: Iterator[pa.Table]) -> None:
        """Write a run that has rows."""
        path = self._folder / f"{self._stored}.arrow"
        self._stored += 1
        first = next(tables)
        options = pa.ipc.IpcWriteOptions(compression=_COMPRESSION, use_threads=False)
        with (
            pa.OSFile(str(path), "wb") as file,
            pa.ipc.new_file(file, first.schema, options=options) as sink,
        ):
            _write(sink, first)
            del first
            for table in tables:
                _write(sink, table)
        self._runs.append(path)


def _write(sink: pa.ipc.RecordBatchFileWriter, table: pa.Table) -> None:
    rows = max(1, table.num_rows * _BATCH_BYTES // max(table.nbytes, 1))
    sink.write_table(table, max_chunksize=rows)


def _merged(runs: Sequence[Path], keys: Sequence[SortKey]) -> Iterator[pa.Table]:
    """The rows of sorted runs, in order: each time those that no unread row can come before."""
    comparable = functools.cmp_to_key(functools.partial(_compared, keys))
    waiting = [_Waiting(_batches(run), keys, comparable) for run in runs]
    while waiting := [each for each in waiting if each.has_rows]:
        bound = min(each.last for each in waiting)
        taken = pa.concat_tables([each.take(bound) for each in waiting])
        yield in_order(taken, list(keys))


def _batches(path: Path) -> Iterator[pa.Table]:
    """The batches of a run, whose file is removed at the end."""
    options = pa.ipc.IpcReadOptions(use_threads=False)
    with pa.OSFile(str(path)) as source:
        stored = pa.ipc.open_file(source, options=options)
        for number in range(stored.num_record_batches):
            yield pa.table(stored.get_batch(number))
    path.unlink()


class _Waiting:
    """The rows of a run that are read, but not taken; ``last`` compares the last one."""

    def __init__(
        self,
        tables: Iterator[pa.Table],
        keys: Sequence[SortKey],
        comparable: Callable[[list[Any]], Any],
    ) -> None:
        self._tables = tables
        self._names = [key.column for key in keys]
        self._comparable = comparable
        self._rows: pa.Table | None = None
        self._read()

    @property
    def has_rows(self) -> bool:
        """Whether any are left."""
        return self._rows is not None

    def take(self, bound: Any) -> pa.Table:
        """The rows that do not come behind ``bound``."""
        assert self._rows is not None  # noqa: S101 - there are rows
        rows, keys = self._rows, self._columns()
        count = bisect_right(range(rows.num_rows), bound, key=lambda row: self._key(keys, row))
        if count == rows.num_rows:
            self._read()
        else:
            self._rows = rows.slice(count)
        return rows.slice(0, count)

    def _read(self) -> None:
        self._rows = next(self._tables, None)
        if self._rows is not None:
            self.last = self._key(self._columns(), self._rows.num_rows - 1)

    def _columns(self) -> list[pa.ChunkedArray]:
        assert self._rows is not None  # noqa: S101 - there are rows
        return [self._rows.column(name) for name in self._names]

    def _key(self, columns: Sequence[pa.ChunkedArray], row: int) -> Any:
        return self._comparable([_comparable(each[row]) for each in columns])


def _comparable(value: pa.Scalar) -> Any:
    """A value that compares in Python as Arrow sorts it; None for NULL."""
    if not value.is_valid:
        return None
    if isinstance(value, pa.BinaryScalar):
        return value.as_buffer().to_pybytes()
    return value.value if hasattr(value, "value") else value.as_py()


def _compared(keys: Sequence[SortKey], left: Sequence[Any], right: Sequence[Any]) -> int:
    """Negative if a row with the values ``left`` comes before one with ``right``; 0: either."""
    for key, one, other in zip(keys, left, right, strict=True):
        if one is None or other is None:
            if one is not other:
                return -1 if (one is None) == key.nulls_first else 1
        elif one != other:
            return -1 if (one < other) == key.ascending else 1
    return 0
