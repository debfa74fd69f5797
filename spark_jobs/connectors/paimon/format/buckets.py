"""Rows in Paimon's binary form, and their buckets in tables with fixed ones. Runs on executors.

Follows Paimon's ``DefaultBucketFunction``: MurmurHash3 (x86, 32 bits, seed 42) over the words of
the bucket key's ``BinaryRow``. Its layout is that of ``AbstractBinaryWriter``: a header with a NULL
bit for each field, a slot of eight bytes for each field, then a variable part for what does not fit
into the slots. All rows of a batch are laid out one after another in one array of 8-byte words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.datafiles import murmur3
from spark_jobs.datafiles.conform import conform
from spark_jobs.spi.rows import RESERVED_PREFIX

BUCKET_COLUMN: Final = f"{RESERVED_PREFIX}bucket"

_HEADER_BITS: Final = 8
_INLINE_BYTES: Final = 7
_COMPACT_DECIMAL: Final = 18
_DECIMAL_BYTES: Final = 16
_SEED: Final = 42
_32_BITS: Final = 2**32 - 1
_FEW_ROWS: Final = 16

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Hashes = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class BucketFunction:
    """Computes the buckets of rows. Picklable.

    ``key`` has the columns of the bucket key in the order of option ``bucket-key``, typed as in the
    table's files. ``buckets`` is the option ``bucket``.
    """

    key: tuple[pa.Field, ...]
    buckets: int

    def __call__(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """The bucket (int32, from 0) of each row; ``rows`` has the key's columns by name."""
        return [pa.array(remainders(key_hashes(rows, self.key), self.buckets))]


def key_hashes(rows: pa.RecordBatch | pa.Table, key: Sequence[pa.Field]) -> Hashes:
    """The hash of the columns ``key`` of each row, as of a ``BinaryRow`` in Java."""
    # The sink rejects NULL in a NOT NULL column, with a better message.
    fields = [field.with_nullable(nullable=True) for field in key]
    columns = [_conformed(rows.column(field.name), field) for field in fields]
    return _murmur3(*_binary_rows(columns, rows.num_rows))


def remainders(hashes: Hashes, count: int) -> npt.NDArray[np.int32]:
    """A number from 0 to ``count`` - 1 for each hash."""
    found: npt.NDArray[np.int32] = np.abs(np.fmod(hashes.astype(np.int64), count)).astype(np.int32)
    return found


def binary_row(columns: Sequence[pa.Array]) -> bytes:
    """The single row of ``columns`` as in manifests: a ``BinaryRow`` after its number of fields."""
    words, _, _ = _binary_rows(columns, 1)
    return len(columns).to_bytes(4, "big") + words.tobytes()


def _conformed(column: pa.Array | pa.ChunkedArray, field: pa.Field) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return conform(column, field)


def _binary_rows(columns: Sequence[pa.Array], rows: int) -> tuple[Words, Integers, Integers]:
    """The words of all rows, and where each row starts and how many words it has."""
    header = (len(columns) + 63 + _HEADER_BITS) // 64
    parts = [_part(column) for column in columns]
    fixed = header + len(columns)
    sizes = np.full(rows, fixed, np.int64)
    for part in parts:
        sizes += part.extra_words
    starts = np.cumsum(sizes) - sizes
    words = np.zeros(int(sizes.sum()), np.uint64)
    cursor = np.full(rows, fixed, np.int64)
    for index, (column, part) in enumerate(zip(columns, parts, strict=True)):
        bit = index + _HEADER_BITS
        nulls = _nulls(column).astype(np.uint64)
        words[starts + bit // 64] |= nulls << np.uint64(bit % 64)
        part.store(words, starts + header + index, starts, cursor)
        cursor = cursor + part.extra_words
    return words, starts, sizes


@dataclass(frozen=True, slots=True)
class _Part:
    """One field of all rows.

    ``slots``: its eight bytes in each row, without the offset. ``extra_words``: how many words each
    row needs in the variable part. ``is_extra``: the rows whose slot holds an offset into that
    part. ``lengths`` and ``data``: the bytes of those rows, one after another.
    """

    slots: Words
    extra_words: Integers
    is_extra: Mask
    lengths: Integers
    data: npt.NDArray[np.uint8]

    def store(self, words: Words, slots: Integers, starts: Integers, cursor: Integers) -> None:
        """Write the field into ``words``; ``cursor``: each row's next free word after its start."""
        offsets = np.where(self.is_extra, cursor * 8, 0).astype(np.uint64)
        words[slots] = self.slots | offsets << np.uint64(32)
        begins = ((starts + cursor) * 8)[self.is_extra]
        places = np.repeat(begins - (np.cumsum(self.lengths) - self.lengths), self.lengths)
        words.view(np.uint8)[places + np.arange(len(places))] = self.data


def _part(column: pa.Array) -> _Part:
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _bytes_part(column)
    if pa.types.is_decimal128(kind) and kind.precision > _COMPACT_DECIMAL:
        return _long_decimal_part(column)
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        return _long_timestamp_part(column)
    return _Part(_fixed(column), *_no_extra(len(column)))


def _no_extra(rows: int) -> tuple[Integers, Mask, Integers, npt.NDArray[np.uint8]]:
    no_bytes = np.zeros(0, np.uint8)
    return np.zeros(rows, np.int64), np.zeros(rows, np.bool_), np.zeros(0, np.int64), no_bytes


def _fixed(column: pa.Array) -> Words:
    """The slots of values that fit into eight bytes; zero for NULL."""
    kind = column.type
    if pa.types.is_decimal128(kind):
        return _decimal_words(column)[:, 0].copy()
    if pa.types.is_boolean(kind):
        column, width = column.cast(pa.uint8()), 8
    elif pa.types.is_timestamp(kind):
        milliseconds = pa.timestamp("ms", kind.tz)
        column, width = column.cast(milliseconds).view(pa.uint64()), 64
    else:
        width = kind.bit_width
        column = column.view(getattr(pa, f"uint{width}")())
    values: Words = pc.fill_null(column, 0).to_numpy(zero_copy_only=False).astype(np.uint64)
    return values


def _bytes_part(column: pa.Array) -> _Part:
    binary = pc.fill_null(column.cast(pa.large_binary()), b"")
    lengths = pc.binary_length(binary).to_numpy(zero_copy_only=False).astype(np.int64)
    valid = ~_nulls(column)
    is_extra = lengths > _INLINE_BYTES
    slots = np.zeros(len(column), np.uint64)
    short = np.flatnonzero(valid & ~is_extra)
    inline = lengths[short]
    places = np.repeat(short * 8 - (np.cumsum(inline) - inline), inline)
    slots.view(np.uint8)[places + np.arange(len(places))] = _content(binary.take(pa.array(short)))
    slots[short] |= (inline | 0x80).astype(np.uint64) << np.uint64(56)
    slots[is_extra] = lengths[is_extra].astype(np.uint64)
    words = np.where(is_extra, (lengths + 7) // 8, 0)
    content = _content(binary.filter(pa.array(is_extra)))
    return _Part(slots, words, is_extra, lengths[is_extra], content)


def _content(binary: pa.Array) -> npt.NDArray[np.uint8]:
    """The bytes of all values, one after another; no value may be NULL."""
    _, offsets, content = pa.concat_arrays([binary]).buffers()
    if content is None or len(binary) == 0:
        return np.zeros(0, np.uint8)
    bounds = np.frombuffer(offsets, np.int64)[binary.offset : binary.offset + len(binary) + 1]
    return np.frombuffer(content, np.uint8)[bounds[0] : bounds[-1]]


def _long_decimal_part(column: pa.Array) -> _Part:
    """More than 18 digits: the shortest two's complement, big-endian, padded to 16 bytes."""
    high_first = _decimal_words(column).view(np.uint8)[:, ::-1]
    negative = high_first[:, :1] >> 7
    repeats_sign = (high_first[:, :-1] == negative * 0xFF) & (high_first[:, 1:] >> 7 == negative)
    skipped = np.cumprod(repeats_sign, axis=1).sum(axis=1)
    places = np.arange(_DECIMAL_BYTES)[None, :] + skipped[:, None]
    shifted = np.take_along_axis(high_first, np.minimum(places, _DECIMAL_BYTES - 1), axis=1)
    data = np.where(places < _DECIMAL_BYTES, shifted, 0).astype(np.uint8)
    data[_nulls(column)] = 0
    slots = np.where(_nulls(column), 0, _DECIMAL_BYTES - skipped).astype(np.uint64)
    return _always_extra(slots, data)


def _long_timestamp_part(column: pa.Array) -> _Part:
    """Precision above 3: milliseconds in 8 extra bytes, nanoseconds of the last one in the slot."""
    micros = pc.fill_null(column.view(pa.int64()), 0).to_numpy(zero_copy_only=False)
    milliseconds = micros // 1000
    slots = ((micros - milliseconds * 1000) * 1000).astype(np.uint64)
    return _always_extra(slots, milliseconds.astype(np.int64).view(np.uint8).reshape(-1, 8))


def _always_extra(slots: Words, data: npt.NDArray[np.uint8]) -> _Part:
    """A field whose NULLs take space too, as in Java, where they may be set later."""
    rows, width = data.shape
    is_extra = np.ones(rows, np.bool_)
    lengths = np.full(rows, width, np.int64)
    return _Part(slots, lengths // 8, is_extra, lengths, data.reshape(-1))


def _decimal_words(column: pa.Array) -> Words:
    """Two words for each value, the low one first; zero for NULL."""
    buffer = column.buffers()[1]
    words = np.frombuffer(buffer, np.uint64).reshape(-1, 2)[column.offset :][: len(column)].copy()
    words[_nulls(column)] = 0
    return words


def _nulls(column: pa.Array) -> Mask:
    found: Mask = column.is_null().to_numpy(zero_copy_only=False)
    return found


def _murmur3(words: Words, starts: Integers, sizes: Integers) -> Hashes:
    """The hash of each row, which is ``sizes`` words of 8 bytes from ``starts`` on.

    Rows are sorted by length, the longest first, so that those with words left are always a prefix.
    The ends of the last few long rows are hashed without numpy, which is faster.
    """
    scrambled = murmur3.scrambled(words.view(np.uint32))
    order = np.argsort(-sizes, kind="stable")
    first, counts = starts[order] * 2, sizes[order] * 2
    state = np.full(len(sizes), _SEED, np.uint32)
    for position in range(int(counts.max(initial=0))):
        active = int(np.searchsorted(-counts, -position, side="left"))
        if active < _FEW_ROWS:
            for row in range(active):
                rest = scrambled[first[row] + position : first[row] + counts[row]]
                state[row] = _continued(int(state[row]), rest.tolist())
            break
        state[:active] = murmur3.mixed(state[:active], scrambled[first[:active] + position])
    hashes = np.empty_like(state)
    hashes[order] = murmur3.finished(state, counts * 4)
    return hashes.view(np.int32)


def _continued(state: int, scrambled: Sequence[int]) -> int:
    for word in scrambled:
        mixed = state ^ word
        state = ((mixed << 13 | mixed >> 19) * murmur3.FACTOR + murmur3.ADDEND) & _32_BITS
    return state
