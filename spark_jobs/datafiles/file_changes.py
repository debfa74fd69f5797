"""The changes of a statement to one data file, and how to apply them to a column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.datafiles.runs import distinct
from spark_jobs.errors import CatalogError, ErrorCode, InternalError
from spark_jobs.spi.rows import MOST_ARRAY_BYTES

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """New values of one column: ``values[i]`` belongs to the changed row ``rows[i]``.

    ``rows`` are ascending indices into ``FileChanges.positions``.
    """

    rows: Positions
    values: pa.Array


@dataclass(frozen=True, slots=True)
class GroupChanges:
    """The changes to the rows of one row group, which are numbered from 0 within it.

    ``start`` is the position of its first row in the file. ``gone`` are the deleted rows,
    ascending. ``columns`` maps a column to its changed rows and the slice of their values in
    ``ColumnChange.values``; it omits columns without changed rows.
    """

    start: int
    gone: Positions
    columns: Mapping[str, tuple[Positions, slice]]


@dataclass(frozen=True, slots=True)
class FileChanges:
    """The changes to the rows of one file.

    ``positions`` (row numbers in the file, from 0, strictly ascending) are the changed rows;
    ``deleted`` marks those that are deleted. ``columns`` has the new values by column.
    """

    positions: Positions
    deleted: npt.NDArray[np.bool_]
    columns: Mapping[str, ColumnChange]

    def require_valid(self, row_count: int, source: str) -> None:
        """Check that the positions lie within the file, which has ``row_count`` rows.

        Raises:
            InternalError: they are not ascending.
            CatalogError: DATA_FILE_UNREADABLE; a position is not in the file.
        """
        rows = self.positions
        if not bool(np.all(rows[1:] > rows[:-1])):
            raise InternalError(
                ErrorCode.INTERNAL_ERROR,
                f"The changed rows of {source} are not ascending.",
                "This is a defect: report it with the statement.",
            )
        if len(rows) and (rows[0] < 0 or rows[-1] >= row_count):
            raise CatalogError(
                ErrorCode.DATA_FILE_UNREADABLE,
                f"{source} has {row_count} rows, but rows {rows[0]} to {rows[-1]} were read or are "
                "marked as deleted.",
                "The file or its metadata is damaged; nothing was changed by this statement.",
            )

    def and_deleted(self, positions: Positions) -> FileChanges:
        """These changes plus the deletion of further rows: ascending, and not yet changed."""
        merged = distinct(self.positions, positions)
        places = np.searchsorted(merged, self.positions)
        deleted = np.ones(len(merged), dtype=np.bool_)
        deleted[places] = self.deleted
        columns = {
            name: ColumnChange(places[change.rows], change.values)
            for name, change in self.columns.items()
        }
        return FileChanges(merged, deleted, columns)

    def updates(self) -> FileChanges:
        """These changes without the deletions."""
        update_rows = np.flatnonzero(~self.deleted)
        columns = {
            name: ColumnChange(np.searchsorted(update_rows, change.rows), change.values)
            for name, change in self.columns.items()
        }
        return FileChanges(self.positions[update_rows], self.deleted[update_rows], columns)

    def of_group(self, start: int, row_count: int) -> GroupChanges:
        """The changes of the ``row_count`` rows from position ``start`` on."""
        first, last = np.searchsorted(self.positions, [start, start + row_count])
        columns = {}
        for name, change in self.columns.items():
            low, high = np.searchsorted(change.rows, [first, last])
            if low < high:
                local = self.positions[change.rows[low:high]] - start
                columns[name] = (local, slice(int(low), int(high)))
        gone = self.positions[first:last][self.deleted[first:last]] - start
        return GroupChanges(start, gone, columns)


def kept_rows(gone: Positions, row_count: int) -> pa.BooleanArray:
    """A mask of ``row_count`` rows; true for those that stay."""
    keep = np.ones(row_count, dtype=np.bool_)
    keep[gone] = False
    return pa.array(keep)


def replace_rows(column: pa.ChunkedArray, rows: Positions, values: pa.Array) -> pa.ChunkedArray:
    """``column`` with ``values[i]`` in row ``rows[i]``; same type, rows ascending.

    Its chunks are those of ``column``, or parts of them where the new values make them too large.
    """
    chunks, start, first = [], 0, 0
    for chunk in column.chunks:
        end = start + len(chunk)
        last = int(np.searchsorted(rows, end))
        chunks += _replaced(chunk, rows[first:last] - start, values[first:last])
        start, first = end, last
    return pa.chunked_array(chunks, column.type)


def _replaced(chunk: pa.Array, rows: Positions, values: pa.Array) -> list[pa.Array]:
    if not len(rows):
        return [chunk]
    if chunk.nbytes + values.nbytes > MOST_ARRAY_BYTES and len(chunk) > 1:
        half = len(chunk) // 2
        low = int(np.searchsorted(rows, half))
        return [
            *_replaced(chunk[:half], rows[:low], values[:low]),
            *_replaced(chunk[half:], rows[low:] - half, values[low:]),
        ]
    if not (pa.types.is_nested(chunk.type) or pa.types.is_boolean(chunk.type)):
        mask = np.zeros(len(chunk), dtype=np.bool_)
        mask[rows] = True
        return [pc.replace_with_mask(chunk, pa.array(mask), values)]
    # replace_with_mask has no kernel for nested types, and reads the wrong bits of a sliced boolean
    # array (pyarrow 19).
    origin = np.arange(len(chunk), dtype=np.int64)
    origin[rows] = len(chunk) + np.arange(len(rows), dtype=np.int64)
    return [pa.concat_arrays([chunk, values]).take(pa.array(origin))]
