"""Which rows of a data file are deleted: by position, by a vector or by value.

Runs on executors. Follows the Iceberg specification, "Position Delete Files", and the Puffin
specification, "deletion-vector-v1 blob type". The bitmap of a vector is 64-bit Roaring.

A file of vectors that is written here never has a second one: once one of the two has been
replaced, an expiry of Iceberg's Java (``IncrementalFileCleanup``, 1.12) removes their file, which
the other one still needs.
"""

from __future__ import annotations

import json
import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from spark_jobs.connectors.iceberg.format.equality import DeletesByValue, KeyFiles
from spark_jobs.datafiles.file_changes import Positions
from spark_jobs.datafiles.file_formats import is_for_pyarrow
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.datafiles.roaring import (
    BrokenBitmapError,
    bitmap_bytes_64,
    bitmap_positions_64,
    frame,
    framed,
)
from spark_jobs.datafiles.row_groups import row_groups
from spark_jobs.datafiles.runs import distinct
from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.spi.tables import ColumnRange
from spark_jobs.storage.files import make_folder

_VECTOR_MAGIC: Final = struct.pack("<I", 1681511377)
# The ids of the columns of files of position deletes.
PATH_ID: Final = 2147483546
_POSITION_ID: Final = 2147483545
_SCHEMA: Final = pa.schema(
    [
        pa.field("file_path", pa.string(), False, {"PARQUET:field_id": str(PATH_ID)}),
        pa.field("pos", pa.int64(), False, {"PARQUET:field_id": str(_POSITION_ID)}),
    ]
)
_NONE: Final[Positions] = np.zeros(0, dtype=np.int64)
_MAGIC: Final = b"PFA1"
_CREATOR: Final = "airflow-provider-merge"


class DeleteFile(NamedTuple):
    """A file of position deletes; a deletion vector has a place in it and ``cardinality`` rows.

    A tuple, because every task unpickles many.
    """

    path: str
    offset: int | None = None
    length: int | None = None
    cardinality: int | None = None


class DataFileDeletes(NamedTuple):
    """A data file and its deletes; ``location`` is how they name it, ``row_count`` its rows."""

    ordinal: int
    location: str
    row_count: int
    deletes: tuple[DeleteFile, ...]
    by_value: DeletesByValue | None = None

    @property
    def are_none(self) -> bool:
        """Whether no row can be deleted."""
        return not self.deletes and self.by_value is None


class DeletedRows:
    """Reads which rows of data files are deleted. Picklable.

    It keeps some of what it has read: one for all files of a task.
    """

    def __init__(self, filesystem: pafs.FileSystem) -> None:
        self._filesystem = filesystem
        self._keys = KeyFiles(filesystem)

    def positions(self, file: DataFileDeletes) -> Positions:
        """The positions of the deleted rows, ascending and distinct.

        Raises:
            CatalogError: DATA_FILE_UNREADABLE, METADATA_UNREADABLE: a file is missing, damaged or
                not about the data file's rows.
            NotSupportedError: neither a file nor the table says which column is which.
        """
        found = [_positions(self._filesystem, each, file.location) for each in file.deletes]
        positions = distinct(_NONE, *found)
        if len(positions) and not 0 <= positions[0] <= positions[-1] < file.row_count:
            raise _damaged(file.deletes[0].path, f"{file.location} has only {file.row_count} rows")
        if file.by_value is None:
            return positions
        more = self._keys.positions(file.by_value, file.row_count, positions)
        return distinct(positions, more)


def positions_by_file(
    filesystem: pafs.FileSystem, deletes: Sequence[str], row_counts: Mapping[str, int]
) -> dict[str, Positions]:
    """The positions that files of deletes have for data files, each read once.

    ``row_counts`` are those of the data files, by location. Raises as ``DeletedRows.positions``.
    """
    parts_by_location: dict[str, list[Positions]] = defaultdict(list)
    for path in deletes:
        with reading_file(path), filesystem.open_input_file(path) as stream:
            for rows in _rows(path, stream):
                for location, positions in _split(rows):
                    if location in row_counts:
                        parts_by_location[location].append(positions)
    return {
        location: _within(distinct(*parts), location, row_counts[location])
        for location, parts in parts_by_location.items()
    }


def _split(rows: pa.Table) -> Iterator[tuple[str, Positions]]:
    """The positions of each data file in rows of deletes."""
    paths = rows.column("file_path").cast(pa.string()).combine_chunks().dictionary_encode()
    codes = paths.indices.to_numpy()
    positions = rows.column("pos").cast(pa.int64()).to_numpy()
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(paths.dictionary) + 1))
    for number, location in enumerate(paths.dictionary.to_pylist()):
        yield location, positions[order[bounds[number] : bounds[number + 1]]]


def _within(positions: Positions, location: str, row_count: int) -> Positions:
    if len(positions) and not 0 <= positions[0] <= positions[-1] < row_count:
        raise _damaged(f"files for {location}", f"it has only {row_count} rows")
    return positions


def _write_deletes(
    filesystem: pafs.FileSystem, path: str, location: str, positions: Positions
) -> int:
    """Write a file of position deletes for one data file; its size in bytes."""
    make_folder(filesystem, path.rpartition("/")[0])
    paths = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(len(positions), np.int32)), pa.array([location])
    )
    table = pa.table([paths.cast(pa.string()), pa.array(positions)], schema=_SCHEMA)
    with filesystem.open_output_stream(path) as stream:
        pq.write_table(table, stream, compression="zstd", store_schema=False)
        return int(stream.tell())


def _positions(filesystem: pafs.FileSystem, delete: DeleteFile, location: str) -> Positions:
    if delete.offset is not None:
        return _vector(filesystem, delete)
    with reading_file(delete.path):
        return _of_file(filesystem, delete.path, location)


def _of_file(filesystem: pafs.FileSystem, path: str, location: str) -> Positions:
    """The positions that a file has for ``location``; its rows are ordered by location."""
    parts = []
    with filesystem.open_input_file(path) as stream:
        for rows in _rows(path, stream, location):
            mine = pa.compute.equal(rows.column("file_path").cast(pa.string()), location)
            parts.append(rows.column("pos").filter(mine).cast(pa.int64()))
    return np.concatenate([_NONE, *(each.to_numpy() for each in parts)])


def _rows(path: str, stream: pa.NativeFile, location: str | None = None) -> Iterator[pa.Table]:
    """The rows of an open file in parts; if a ``location`` is given, perhaps only those with it."""
    names = ["file_path", "pos"]
    if is_for_pyarrow(path):
        for other in row_groups(path, stream, _SCHEMA):
            yield pa.table({name: other.column(name) for name in names})
        return
    file = pq.ParquetFile(stream)
    if not {*names} <= {*file.schema_arrow.names}:
        raise pa.ArrowInvalid("it has no columns file_path and pos")
    leaf = file.schema_arrow.names.index("file_path")
    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        bounds = group.column(leaf).statistics
        if location is not None and bounds is not None and bounds.has_min_max:
            known = ColumnRange(bounds.min, bounds.max, None).believed(group.num_rows)
            if known.minimum is not None and not known.minimum <= location <= known.maximum:
                continue
        yield file.read_row_group(number, columns=names, use_threads=False)


def _vector(filesystem: pafs.FileSystem, delete: DeleteFile) -> Positions:
    assert delete.offset is not None and delete.length is not None  # noqa: S101, PT018
    with reading_file(delete.path), filesystem.open_input_file(delete.path) as stream:
        if not 0 <= delete.offset <= delete.offset + delete.length <= stream.size():
            raise _damaged(delete.path, "it ends before its deletion vector")
        stream.seek(delete.offset)
        data = stream.read(delete.length)
    return decoded_vector(data, delete.path, delete.cardinality)


def decoded_vector(data: bytes, path: str, count: int | None = None) -> Positions:
    """The positions in a deletion vector; there must be ``count``, if it is known.

    Raises:
        CatalogError: METADATA_UNREADABLE: it is damaged, or of a file of over 2**32 rows.
    """
    try:
        return bitmap_positions_64(framed(data, _VECTOR_MAGIC), count)
    except BrokenBitmapError as error:
        raise _damaged(path, str(error)) from None


def _damaged(path: str, reason: str) -> CatalogError:
    return CatalogError(
        ErrorCode.METADATA_UNREADABLE,
        f"The deletes in {path} are damaged: {reason}.",
        "Restore the file, or roll the table back to a snapshot before it.",
    )


class _StoredVector(NamedTuple):
    """A vector in the Puffin file ``path`` of ``size`` bytes; ``rows`` are how many it marks."""

    path: str
    size: int
    offset: int
    length: int
    rows: int


def _write_vector(
    filesystem: pafs.FileSystem, path: str, location: str, positions: Positions
) -> _StoredVector:
    """Write the file ``path`` with the deleted rows (ascending) of the data file ``location``."""
    vector = frame(_VECTOR_MAGIC + bitmap_bytes_64(positions))
    blob = {
        "type": "deletion-vector-v1",
        "fields": [_POSITION_ID],
        "snapshot-id": -1,
        "sequence-number": -1,
        "offset": len(_MAGIC),
        "length": len(vector),
        "properties": {"referenced-data-file": location, "cardinality": str(len(positions))},
    }
    document = {"blobs": [blob], "properties": {"created-by": _CREATOR}}
    footer = json.dumps(document).encode()
    end = (_MAGIC, footer, struct.pack("<i", len(footer)), bytes(4), _MAGIC)
    content = b"".join((_MAGIC, vector, *end))
    make_folder(filesystem, path.rpartition("/")[0])
    with filesystem.open_output_stream(path) as stream:
        stream.write(content)
    return _StoredVector(path, len(content), len(_MAGIC), len(vector), len(positions))


def stored_deletes(
    filesystem: pafs.FileSystem,
    path: str,
    location: str,
    positions: Positions,
    *,
    as_vector: bool,
) -> dict[str, Any]:
    """Write the deleted rows (ascending) of a data file: a vector, or a file of position deletes.

    The fields of a ``_StoredVector``, those of the place within the file for a vector alone.
    """
    if as_vector:
        return _write_vector(filesystem, path, location, positions)._asdict()
    size = _write_deletes(filesystem, path, location, positions)
    return {"path": path, "size": size, "rows": len(positions)}
