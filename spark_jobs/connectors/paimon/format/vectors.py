"""Deletion vectors, and the index files that hold them. Runs on executors, too.

Follows Paimon's ``BitmapDeletionVector``. A vector consists of, in this order,

- 4 bytes, big-endian: the length of magic number and bitmap together,
- 4 bytes, big-endian: the magic number,
- a 32-bit Roaring bitmap, little-endian (``datafiles.roaring``),
- 4 bytes, big-endian: the CRC-32 of magic number and bitmap.

An index file is a version byte, followed by vectors. Never imports a table
library.
"""

from __future__ import annotations

import posixpath
import struct
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import pyarrow.fs as pafs

from spark_jobs.datafiles.file_changes import Positions
from spark_jobs.datafiles.roaring import BrokenBitmapError, bitmap_bytes, bitmap_positions, framed
from spark_jobs.errors import CatalogError, ErrorCode, NotSupportedError
from spark_jobs.storage.files import in_parallel, make_folder

_MAGIC = struct.pack(">I", 1581511376)
# 64-bit vectors are Iceberg's, whose magic number is little-endian.
_MAGIC_64 = struct.pack("<I", 1681511377)
_CRC = struct.Struct(">I")
# In bytes. New index files are small, because writers that replace the same one conflict.
_TARGET_SIZE: Final = 2 * 1024 * 1024
_VERSION: Final = b"\x01"
_LENGTH_BYTES: Final = 4
_CHECKSUM_BYTES: Final = 4


def decode(data: bytes, source: str, cardinality: int | None = None) -> Positions:
    """The deleted positions, in ascending order, of the vector ``data``.

    ``source`` identifies the vector in errors. ``cardinality`` is the number of positions that the
    vector must have, if known; never more than these are decoded.

    Raises:
        NotSupportedError: it is a 64-bit vector.
        CatalogError: METADATA_UNREADABLE: the bytes are not exactly one intact vector.
    """
    if data[4:8] == _MAGIC_64:
        raise NotSupportedError(
            f"{source} is a 64-bit deletion vector (deletion-vectors.bitmap64).",
            "Rewrite the table's files without it, with deletion-vectors.bitmap64=false.",
        )
    try:
        return bitmap_positions(framed(data, _MAGIC), cardinality)
    except BrokenBitmapError as error:
        raise _damaged(source, str(error)) from None


def encode(positions: Positions) -> bytes:
    """The vector of ``positions``, which are ascending, distinct and below ``2**32``."""
    body = _MAGIC + bitmap_bytes(positions)
    return b"".join((len(body).to_bytes(4, "big"), body, _CRC.pack(zlib.crc32(body))))


def _damaged(source: str, reason: str) -> CatalogError:
    return CatalogError(
        ErrorCode.METADATA_UNREADABLE,
        f"The deletion vector {source} is damaged: {reason}.",
        "Restore the index file, or roll the table back to a snapshot before it.",
    )


class VectorRange(NamedTuple):
    """The place of a data file's deletion vector within its index file.

    ``length`` is in bytes, without the leading length field and the trailing checksum.
    ``cardinality`` is the number of deleted rows; None if the writer did not record it.
    """

    offset: int
    length: int
    cardinality: int | None


class VectorLocation(NamedTuple):
    """The index file and place of a data file's deletion vector; ``length`` as in ``VectorRange``.

    A tuple, because every task unpickles the locations of many files.
    """

    path: str
    offset: int
    length: int
    cardinality: int

    @property
    def end(self) -> int:
        """The end offset of the vector, including its length field and its checksum."""
        return self.offset + _LENGTH_BYTES + self.length + _CHECKSUM_BYTES


def read_bytes(
    filesystem: pafs.FileSystem, locations: Collection[VectorLocation]
) -> dict[VectorLocation, bytes]:
    """The bytes of the vectors; each index file is opened once.

    Raises:
        CatalogError: METADATA_UNREADABLE: a file ends before the end of a vector.
        OSError: a file cannot be read.
    """
    by_path: dict[str, list[VectorLocation]] = defaultdict(list)
    for location in locations:
        by_path[location.path].append(location)
    found = in_parallel(partial(_read_from_one, filesystem), list(by_path.values()))
    return {location: content for each in found for location, content in each.items()}


def _read_from_one(
    filesystem: pafs.FileSystem, locations: Sequence[VectorLocation]
) -> dict[VectorLocation, bytes]:
    """The vectors of one index file, read in one piece, including the bytes between them."""
    start = min(location.offset for location in locations)
    last = max(locations, key=lambda location: location.end)
    with filesystem.open_input_file(last.path) as file:
        if last.end > file.size():
            raise CatalogError(
                ErrorCode.METADATA_UNREADABLE,
                f"The index file {last.path} ends before the deletion vector at {last.offset}.",
                "Restore the index file, or roll the table back to a snapshot before it.",
            )
        content = file.read_at(last.end - start, start)
    return {each: content[each.offset - start : each.end - start] for each in locations}


def read_vector(filesystem: pafs.FileSystem, location: VectorLocation) -> Positions:
    """The positions of a data file's deleted rows, in ascending order.

    Raises:
        JobError: the vector is damaged, or its kind is not supported.
    """
    return vector_of(location, read_bytes(filesystem, [location])[location])


def vector_of(location: VectorLocation, content: bytes) -> Positions:
    """The positions of the vector with this ``content``, from ``read_bytes``; as ``read_vector``.

    Raises:
        JobError: the vector is damaged, or its kind is not supported.
    """
    source = f"{location.path} at {location.offset}"
    return decode(content, source, location.cardinality)


@dataclass(frozen=True, slots=True)
class WrittenIndex:
    """An index file; ``vectors`` has (offset, length, cardinality) by ordinal of the data file."""

    path: str
    size: int
    vectors: Mapping[int, tuple[int, int, int]]

    @property
    def vector_bytes(self) -> int:
        """The size of the vectors in bytes, which does not change when they are copied."""
        return self.size - len(_VERSION)

    def to_json(self) -> dict[str, Any]:
        """The file as JSON data."""
        vectors = [[ordinal, *each] for ordinal, each in self.vectors.items()]
        return {"path": self.path, "size": self.size, "vectors": vectors}


class VectorIndexWriter:
    """Writes vectors of data files that arrive bucket by bucket; an index file has one bucket.

    ``directory`` is where index files belong; None: beside the data files. ``new_path`` makes the
    path of a new file in a directory.
    """

    def __init__(
        self, filesystem: pafs.FileSystem, directory: str | None, new_path: Callable[[str], str]
    ) -> None:
        self._filesystem = filesystem
        self._directory = directory
        self._new_path = new_path
        self._bucket: int | None = None
        self._beside = ""
        self._content = bytearray(_VERSION)
        self._vectors: dict[int, tuple[int, int, int]] = {}
        self._written: list[WrittenIndex] = []

    def add(self, ordinal: int, bucket: int, beside: str, positions: Positions) -> None:
        """Take the positions of all deleted rows of a data file, in ascending order.

        ``bucket`` numbers the buckets of all partitions, because partitions may share folders.
        ``beside`` is the bucket's directory in the table, even if the data file is elsewhere.
        """
        if bucket != self._bucket or len(self._content) >= _TARGET_SIZE:
            self._write()
            self._bucket, self._beside = bucket, beside
        vector = encode(positions)
        length = len(vector) - _LENGTH_BYTES - _CHECKSUM_BYTES
        self._vectors[ordinal] = (len(self._content), length, len(positions))
        self._content += vector

    def finish(self) -> list[WrittenIndex]:
        """Write out what is pending and return all index files."""
        self._write()
        return self._written

    def _write(self) -> None:
        if not self._vectors:
            return
        path = self._new_path(self._directory or self._beside)
        write_index(self._filesystem, path, bytes(self._content))
        self._written.append(WrittenIndex(path, len(self._content), self._vectors))
        self._content, self._vectors = bytearray(_VERSION), {}


def copied_index(
    filesystem: pafs.FileSystem, path: str, vectors: Mapping[str, VectorLocation]
) -> tuple[int, dict[str, VectorRange]]:
    """Write an index file of copied vectors; return its size and the place of each, by name."""
    content, ranges = bytearray(_VERSION), {}
    copied = read_bytes(filesystem, vectors.values())
    for name, location in vectors.items():
        ranges[name] = VectorRange(len(content), location.length, location.cardinality)
        content += copied[location]
    write_index(filesystem, path, bytes(content))
    return len(content), ranges


def write_index(filesystem: pafs.FileSystem, path: str, content: bytes) -> None:
    """Store an index file, and create its directory on storage that has directories."""
    make_folder(filesystem, posixpath.dirname(path))
    with filesystem.open_output_stream(path) as stream:
        stream.write(content)
