"""Records that wait on the local disk until they are merged. Runs on executors.

A run that is read directly keeps pages, dictionaries or whole row groups of its file in memory, for
as long as the file lasts. Beyond some memory for all runs, files are copied first, as by Paimon's
``MergeSorter``; the copies have small batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from spark_jobs.datafiles.file_formats import is_avro, is_orc

_COMPRESSION: Final = "lz4"
# A value of unknown length.
_TEXT_BYTES: Final = 32
# What a reader of parquet holds of a column at most: a page, a dictionary, a part of the chunk.
_READER_BYTES: Final = 3 * 2**19


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
