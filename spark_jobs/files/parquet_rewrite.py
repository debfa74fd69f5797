"""Rewriting a parquet file with some rows changed or deleted, one row group at a time.

Rows keep their order and row groups their boundaries. Values that are not assigned stay as they are
in Arrow form; nothing passes through pandas or Spark rows. Memory: one row group and the changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from spark_jobs.errors import ErrorCode, InternalError
from spark_jobs.files.conform import conform
from spark_jobs.files.parquet_options import (
    Compression,
    ParquetOptions,
    low_cardinality_columns,
)
from spark_jobs.files.parquet_write import ParquetFileWriter, WrittenFile

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """New values of one column: ``values[i]`` is for the changed row ``rows[i]``.

    ``rows`` are ascending indices into ``FileChanges.positions``.
    """

    rows: Positions
    values: pa.Array


@dataclass(frozen=True, slots=True)
class FileChanges:
    """What happens to the rows of one file.

    ``positions`` (row numbers in the file, from 0, strictly ascending) are the changed rows;
    ``deleted`` tells for each whether it goes. ``columns`` has the new values by column.
    """

    positions: Positions
    deleted: npt.NDArray[np.bool_]
    columns: Mapping[str, ColumnChange]


def rewrite(
    filesystem: pafs.FileSystem,
    source: str,
    target: str,
    changes: FileChanges,
    compression: Compression,
) -> WrittenFile | None:
    """Write ``source`` with ``changes`` applied to ``target``; None when no row is left.

    Raises:
        DataError: a new value does not fit its column or must not be NULL.
        NotSupportedError: the file has INT96 timestamps, which pyarrow can not copy.
        InternalError: a position is not in the file, or positions are not ascending.
    """
    with pq.ParquetFile(filesystem.open_input_file(source)) as plain:
        metadata, schema = plain.metadata, plain.schema_arrow
        _require_valid(changes.positions, metadata.num_rows, source)
        if int(changes.deleted.sum()) == metadata.num_rows:
            return None
        options = ParquetOptions.like(metadata)
        texts = [n for n in low_cardinality_columns(metadata, schema) if n not in changes.columns]
    with pq.ParquetFile(
        filesystem.open_input_file(source), metadata=metadata, read_dictionary=texts
    ) as file:
        writer = ParquetFileWriter(filesystem, target, file.schema_arrow, options, compression)
        try:
            _rewrite_row_groups(file, writer, changes)
            return writer.finish()
        except BaseException:
            writer.close_quietly()
            raise


def _require_valid(positions: Positions, row_count: int, source: str) -> None:
    ascending = bool(np.all(positions[1:] > positions[:-1]))
    if ascending and (len(positions) == 0 or (positions[0] >= 0 and positions[-1] < row_count)):
        return
    raise InternalError(
        ErrorCode.INTERNAL_ERROR,
        f"The changed rows of {source} are not ascending positions below {row_count}.",
        "This is a defect: report it with the statement.",
    )


def _rewrite_row_groups(
    file: pq.ParquetFile,
    writer: ParquetFileWriter,
    changes: FileChanges,
) -> None:
    start = 0
    for number in range(file.num_row_groups):
        group = file.read_row_group(number, use_threads=False)
        end = start + group.num_rows
        first, last = np.searchsorted(changes.positions, [start, end])
        if first < last:
            group = _changed(group, start, int(first), int(last), changes)
        writer.write_row_group(group)
        start = end


def _changed(group: pa.Table, start: int, first: int, last: int, changes: FileChanges) -> pa.Table:
    """``group``, whose first row has position ``start``, with changes ``first`` to ``last``."""
    for name, change in changes.columns.items():
        low, high = np.searchsorted(change.rows, [first, last])
        if low == high:
            continue
        local = changes.positions[change.rows[low:high]] - start
        index = group.schema.get_field_index(name)
        field = group.schema.field(index)
        values = conform(change.values.slice(low, high - low), field)
        group = group.set_column(index, field, replace_rows(group.column(index), local, values))
    gone = changes.positions[first:last][changes.deleted[first:last]] - start
    if len(gone):
        keep = np.ones(group.num_rows, dtype=np.bool_)
        keep[gone] = False
        group = group.filter(pa.array(keep))
    return group


def replace_rows(column: pa.ChunkedArray, rows: Positions, values: pa.Array) -> pa.Array:
    """``column`` with ``values[i]`` in row ``rows[i]``; both of one type, rows ascending."""
    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks)
    if not (pa.types.is_nested(column.type) or pa.types.is_boolean(column.type)):
        mask = np.zeros(len(whole), dtype=np.bool_)
        mask[rows] = True
        return pc.replace_with_mask(whole, pa.array(mask), values)
    # replace_with_mask has no kernel for nested types, and takes the wrong bits of a boolean array
    # that is a slice (pyarrow 19).
    origin = np.arange(len(whole), dtype=np.int64)
    origin[rows] = len(whole) + np.arange(len(rows), dtype=np.int64)
    return pa.concat_arrays([whole, values]).take(pa.array(origin))
