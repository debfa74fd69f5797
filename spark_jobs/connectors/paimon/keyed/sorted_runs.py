"""Sorted runs: cut at the same keys, or waiting on the local disk. Runs on executors.

A run that is read directly keeps pages, dictionaries or whole row groups of its file in memory, for
as long as the file lasts. Beyond some memory for all runs, files are copied first, as by Paimon's
``MergeSorter``; the copies have small batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa

from spark_jobs.connectors.paimon.keyed.key_order import rows_up_to
from spark_jobs.datafiles.file_formats import is_avro, is_orc

_COMPRESSION: Final = "lz4"
# A value of unknown length.
_TEXT_BYTES: Final = 32
# What a reader of parquet holds of a column at most: a page, a dictionary, a part of the chunk.
_READER_BYTES: Final = 3 * 2**19


class _RunsPart(NamedTuple):
    """The records of all runs up to a key, by run; ``is_one_run``: no key has two of them."""

    records: pa.Table
    is_one_run: bool


class SortedRun:
    """The records of a sorted run, in ``chunks``, of which one at a time is in memory.

    ``is_unique``: no key occurs twice; otherwise all records of a key are in one chunk.
    """

    def __init__(
        self, chunks: Iterator[pa.Table], key: Sequence[str], *, is_unique: bool = True
    ) -> None:
        self._chunks = chunks
        self._key = key
        self._current: pa.Table | None = None
        self.is_unique = is_unique

    def advance(self) -> bool:
        """Whether there are more records; the next ones are current then."""
        while self._current is None or not self._current.num_rows:
            self._current = None  # The old chunk goes before the new one comes.
            self._current = next(self._chunks, None)
            if self._current is None:
                return False
        return True

    def last_key(self) -> tuple[Any, ...]:
        """The last key of the current records."""
        assert self._current is not None  # noqa: S101
        end = self._current.num_rows - 1
        return tuple(self._current.column(name)[end] for name in self._key)

    def take(self, key: Sequence[Any]) -> pa.Table:
        """The current records up to ``key``, which is at most ``last_key``, and are no more."""
        assert self._current is not None  # noqa: S101
        count = rows_up_to(self._current, self._key, key)
        found = self._current.slice(0, count)
        rest = self._current.slice(count)
        self._current = rest if rest.num_rows else None
        return found


def parts(runs: Sequence[SortedRun], key: Sequence[str]) -> Iterator[_RunsPart]:
    """The records of all runs, as few as possible at a time."""
    while live := [run for run in runs if run.advance()]:
        end = min((run.last_key() for run in live), key=lambda each: tuple(map(_comparable, each)))
        yield _part(live, end)


def _part(runs: Sequence[SortedRun], end: Sequence[Any]) -> _RunsPart:
    taken = [(run.take(end), run.is_unique) for run in runs]
    nonempty = [(records, is_unique) for records, is_unique in taken if records.num_rows]
    is_one_run = len(nonempty) == 1 and nonempty[0][1]
    return _RunsPart(pa.concat_tables([records for records, _ in nonempty]), is_one_run)


def _comparable(scalar: pa.Scalar) -> Any:
    """A Python value in the order of the key; times as numbers, because Python lacks some."""
    return scalar.value if pa.types.is_temporal(scalar.type) else scalar.as_py()


def spilled(records: Iterator[pa.Table], path: Path) -> Iterator[pa.Table]:
    """``records`` with the same batches, after all of them have been written to a file at ``path``.

    The file is removed at the end.
    """
    if not _write(records, path):
        return
    options = pa.ipc.IpcReadOptions(use_threads=False)
    with pa.OSFile(str(path)) as source:
        stored = pa.ipc.open_file(source, options=options)
        for number in range(stored.num_record_batches):
            yield pa.table(stored.get_batch(number))
    path.unlink()


def _write(records: Iterator[pa.Table], path: Path) -> bool:
    """Write a batch for each table; whether there are any."""
    first = next(records, None)
    if first is None:
        return False
    options = pa.ipc.IpcWriteOptions(compression=_COMPRESSION, use_threads=False)
    with (
        pa.OSFile(str(path), "wb") as file,
        pa.ipc.new_file(file, first.schema, options=options) as sink,
    ):
        sink.write_table(first.combine_chunks())
        del first
        for table in records:
            sink.write_table(table.combine_chunks())
            del table
    return True


def held_bytes(path: str, row_count: int, columns: pa.Schema) -> int:
    """About the memory that a reader of a file holds beside its batches."""
    if is_avro(path):
        return 0
    widths = [width for field in columns for width in _leaf_widths(field.type)]
    if is_orc(path):
        return row_count * sum(widths)
    return sum(min(row_count * width, _READER_BYTES) for width in widths)


def runs_to_spill(held: Sequence[int], most: int) -> set[int]:
    """The runs to copy, the smallest ones, so that the others hold ``most`` bytes or are one.

    ``held`` is what readers of each run hold.
    """
    total, to_copy = sum(held), set()
    for index in sorted(range(len(held)), key=lambda each: held[each])[:-1]:
        if total <= most:
            break
        to_copy.add(index)
        total -= held[index]
    return to_copy


def _leaf_widths(kind: pa.DataType) -> list[int]:
    if kind.num_fields:
        return [each for i in range(kind.num_fields) for each in _leaf_widths(kind.field(i).type)]
    try:
        return [max(kind.bit_width // 8, 1)]
    except ValueError:
        return [_TEXT_BYTES]
