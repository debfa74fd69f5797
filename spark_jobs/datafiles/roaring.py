"""Reads and writes Roaring bitmaps in their portable format. Runs on executors.

Follows the Roaring format specification (https://github.com/RoaringBitmap/RoaringFormatSpec).
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
import numpy.typing as npt

from spark_jobs.datafiles.file_changes import Positions

_NUMBER = struct.Struct(">I")
# Of a 64-bit bitmap: how many 32-bit ones it consists of, then the high half of the first one.
_COUNT = struct.Struct("<Q")
_HEAD_64 = struct.Struct("<QI")
_COOKIE = 12346
_COOKIE_WITH_RUNS = 12347
# Bitmaps with runs and fewer containers than this have no offsets.
_FIRST_WITH_OFFSETS = 4
_CONTAINER_BITS = 16
_CONTAINER_SIZE = 1 << _CONTAINER_BITS
_ARRAY_LIMIT = 4096
_U2 = np.dtype("<u2")
_U4 = np.dtype("<u4")


class BrokenBitmapError(ValueError):
    """A bitmap is damaged; the message says how."""


def framed(data: bytes, magic: bytes) -> memoryview:
    """The bitmap of a vector: after its length and ``magic``, and before a CRC-32.

    Length (of magic number and bitmap) and checksum have 4 bytes, big-endian.

    Raises:
        BrokenBitmapError: the bytes are not exactly one intact frame.
    """
    if len(data) < 2 * _NUMBER.size:
        raise BrokenBitmapError(f"{len(data)} bytes are too few")
    body = memoryview(data)[_NUMBER.size : -_NUMBER.size]
    length = _NUMBER.unpack_from(data)[0]
    if length != len(body):
        raise BrokenBitmapError(f"it says {length} bytes, but {len(body)} are there")
    if zlib.crc32(body) != _NUMBER.unpack_from(data, len(data) - _NUMBER.size)[0]:
        raise BrokenBitmapError("its checksum is wrong")
    if body[: len(magic)] != magic:
        raise BrokenBitmapError(f"it begins with {bytes(body[: len(magic)])!r}, not {magic!r}")
    return body[len(magic) :]


def frame(body: bytes) -> bytes:
    """A vector that ``framed`` reads; ``body`` begins with its magic number."""
    return _NUMBER.pack(len(body)) + body + _NUMBER.pack(zlib.crc32(body))


def bitmap_bytes_64(positions: Positions) -> bytes:
    """The 64-bit bitmap of numbers that are ascending, distinct and below ``2**32``."""
    return _HEAD_64.pack(1, 0) + bitmap_bytes(positions)


def bitmap_positions_64(data: memoryview, expected: int | None = None) -> Positions:
    """As ``bitmap_positions``, of a 64-bit bitmap of numbers below 2**32."""
    if len(data) == _COUNT.size and not any(data) and not expected:
        return np.zeros(0, dtype=np.int64)
    if len(data) < _HEAD_64.size or _HEAD_64.unpack_from(data) != (1, 0):
        raise BrokenBitmapError("it is of a file with more than 2**32 rows")
    return bitmap_positions(data[_HEAD_64.size :], expected)


def bitmap_positions(data: memoryview, expected: int | None = None) -> Positions:
    """The ascending numbers in the single bitmap that ``data`` consists of.

    ``expected`` is how many there must be, if known; a bitmap that claims another number is refused
    before its containers are read.

    Raises:
        BrokenBitmapError: the bytes are not exactly one such bitmap.
    """
    reader = _Reader(data)
    has_runs, has_offsets = _container_kinds(reader)
    count = len(has_runs)
    keys, cardinalities = reader.take(_U2, 2 * count).reshape(count, 2).T
    if (np.diff(keys) <= 0).any():
        raise BrokenBitmapError("its containers are out of order")
    stated = int(cardinalities.sum()) + count
    if expected is not None and stated != expected:
        raise BrokenBitmapError(f"it has {stated} positions instead of {expected}")
    if has_offsets:
        reader.take(_U4, count)  # not needed: the containers are contiguous
    containers = [
        _container(reader, int(cardinality) + 1, bool(runs)) + (key << _CONTAINER_BITS)
        for key, cardinality, runs in zip(keys, cardinalities, has_runs, strict=True)
    ]
    if len(reader.rest):
        raise BrokenBitmapError(f"{len(reader.rest)} bytes follow its last container")
    return np.concatenate(containers) if containers else np.empty(0, np.int64)


def bitmap_bytes(positions: Positions) -> bytes:
    """The bitmap of numbers that are ascending, distinct and below ``2**32``."""
    keys = positions >> _CONTAINER_BITS
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    cardinalities = np.diff(starts, append=len(positions))
    head = np.stack((keys[starts], cardinalities - 1), axis=1).astype(_U2).tobytes()
    low = (positions & (_CONTAINER_SIZE - 1)).astype(_U2)
    containers = [
        _container_bytes(low[start : start + cardinality])
        for start, cardinality in zip(starts, cardinalities, strict=True)
    ]
    first = 8 + len(head) + 4 * len(containers)
    sizes = np.array([len(container) for container in containers], np.int64)
    offsets = (first + np.cumsum(sizes) - sizes).astype(_U4).tobytes()
    cookie = struct.pack("<II", _COOKIE, len(containers))
    return b"".join((cookie, head, offsets, *containers))


class _Reader:
    """Takes arrays from the front of a buffer, which may be shorter than its content claims."""

    def __init__(self, data: memoryview) -> None:
        self.rest = data

    def take(self, dtype: np.dtype[np.unsignedinteger], count: int) -> npt.NDArray[np.int64]:
        """The next ``count`` numbers."""
        size = count * dtype.itemsize
        if size > len(self.rest):
            raise BrokenBitmapError(f"{size} bytes were expected where {len(self.rest)} are left")
        taken, self.rest = self.rest[:size], self.rest[size:]
        return np.frombuffer(taken, dtype).astype(np.int64)


def _container_kinds(reader: _Reader) -> tuple[npt.NDArray[np.bool_], bool]:
    """Whether each container holds runs, and whether the containers' offsets follow."""
    cookie = int(reader.take(_U4, 1)[0])
    if cookie & 0xFFFF == _COOKIE_WITH_RUNS:
        count = (cookie >> 16) + 1
        flags = reader.take(np.dtype("u1"), -(-count // 8)).astype(np.uint8)
        has_runs = np.unpackbits(flags, count=count, bitorder="little").astype(np.bool_)
        return has_runs, count >= _FIRST_WITH_OFFSETS
    if cookie != _COOKIE:
        raise BrokenBitmapError(f"its cookie is {cookie}")
    count = int(reader.take(_U4, 1)[0])
    if count > _CONTAINER_SIZE:
        raise BrokenBitmapError(f"{count} containers are more than there can be")
    return np.zeros(count, np.bool_), True


def _container(reader: _Reader, cardinality: int, has_runs: bool) -> Positions:
    """The ascending positions of the next container, counted from its start."""
    if has_runs:
        positions = _run_positions(reader)
    elif cardinality <= _ARRAY_LIMIT:
        positions = reader.take(_U2, cardinality)
        if (np.diff(positions) <= 0).any():
            raise BrokenBitmapError("a container's positions are out of order")
    else:
        words = reader.take(np.dtype("u1"), _CONTAINER_SIZE // 8).astype(np.uint8)
        positions = np.flatnonzero(np.unpackbits(words, bitorder="little"))
    if len(positions) != cardinality:
        raise BrokenBitmapError(f"a container of {cardinality} positions has {len(positions)}")
    return positions


def _run_positions(reader: _Reader) -> Positions:
    count = int(reader.take(_U2, 1)[0])
    starts, longer_than_one = reader.take(_U2, 2 * count).reshape(count, 2).T
    ends = starts + longer_than_one + 1
    if (starts[1:] < ends[:-1]).any() or (ends > _CONTAINER_SIZE).any():
        raise BrokenBitmapError("a container's runs are out of order")
    steps = np.zeros(_CONTAINER_SIZE + 1, np.int8)
    # A run may start where the previous one ends.
    np.add.at(steps, starts, 1)
    np.add.at(steps, ends, -1)
    return np.flatnonzero(np.cumsum(steps[:-1]))


def _container_bytes(low: npt.NDArray[np.uint16]) -> bytes:
    if len(low) <= _ARRAY_LIMIT:
        return low.tobytes()
    bits = np.zeros(_CONTAINER_SIZE, np.uint8)
    bits[low] = 1
    return np.packbits(bits, bitorder="little").tobytes()
