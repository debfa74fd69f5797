"""Removes rows from a dictionary-encoded chunk; the dictionary page stays as it is.

Only the indices are decoded and packed again, so that no values are compared or hashed for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.datafiles.parquet import encodings, thrift
from spark_jobs.datafiles.parquet import footer as footers
from spark_jobs.datafiles.parquet.chunk_statistics import exact_bounds
from spark_jobs.datafiles.parquet.column_codec import EncodedChunk, Window, is_ordered, read_pages
from spark_jobs.datafiles.parquet.encodings import bit_packed, encode_hybrid, repeated, varint
from spark_jobs.datafiles.parquet.footer import (
    MAGIC,
    ElementField,
    MetaField,
    NotSpliceableError,
    StatisticsField,
    TopColumn,
    number,
)
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.parquet.thrift import I32, STRUCT, Struct, i32, i64, list_of

_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_PAGE_BYTES: Final = 1024 * 1024
_PAGE_ROWS: Final = 1024 * 1024
_BLOCK: Final = 64 * 1024
# The size of a chunk, as a share of what its values take without a dictionary.
_WORTH_A_DICTIONARY: Final = 0.6
_WIDTHS: Final = {footers.INT32: 4, footers.INT64: 8}
_PLAIN_WIDTHS: Final = {**_WIDTHS, footers.FLOAT: 4, footers.DOUBLE: 8}
# pyarrow's codec names by their numbers in ColumnMetaData.
_CODECS: Final = {0: "none", 1: "snappy", 2: "gzip", 6: "zstd"}


@dataclass(frozen=True, slots=True)
class _Dictionary:
    """A dictionary page.

    ``page``: its bytes with the header; ``uncompressed_size`` counts the header too. ``body``: the
    entries in PLAIN encoding. ``encoding``: that of the page, PLAIN or PLAIN_DICTIONARY.
    """

    page: memoryview
    uncompressed_size: int
    body: bytes
    count: int
    encoding: int

    @property
    def width(self) -> int:
        """The bit width of an index."""
        return max(1, (self.count - 1).bit_length())


def keeps_dictionary(column: TopColumn, metas: Sequence[Struct]) -> bool:
    """Whether a column's chunks, encoded anew, should have dictionaries as they have now.

    A number that is little longer than its index is better stored itself.
    """
    if not any(map(footers.is_all_dictionary, metas)):
        return False
    element, meta = column.elements[0], metas[0]
    stored_as = number(element, ElementField.TYPE)
    width = _PLAIN_WIDTHS.get(stored_as) or number(element, ElementField.TYPE_LENGTH)
    if not column.is_flat or not width:
        return True
    plain = width * number(meta, MetaField.NUM_VALUES)
    return number(meta, MetaField.UNCOMPRESSED_SIZE) < _WORTH_A_DICTIONARY * plain


def can_lose_rows(column: TopColumn, meta: Struct, compression: Compression) -> bool:
    """Whether ``without_rows`` supports the chunk's type, and the chunk has the wanted codec."""
    return (
        column.is_flat
        and keeps_dictionary(column, [meta])
        and _CODECS.get(number(meta, MetaField.CODEC, -1)) == compression.codec
        and _has_known_order(column)
    )


def without_rows(
    column: TopColumn, window: Window, meta: Struct, keep: pa.BooleanArray, compression: Compression
) -> EncodedChunk | None:
    """The chunk's rows where ``keep`` is true.

    None if fewer rows than dictionary entries are left, or if not all pages use the dictionary.
    """
    pages = window.pages(meta)
    dictionary = _read_dictionary(pages, meta)
    indices = _indices(column, pages[len(dictionary.page) :], meta, dictionary)
    if indices is None:
        return None
    left = indices.filter(keep)
    if len(left) < dictionary.count:
        return None
    optional = footers.repetition(column.elements[0]) == footers.OPTIONAL
    new_pages: list[bytes | memoryview] = [dictionary.page]
    uncompressed = dictionary.uncompressed_size
    for page, size in _data_pages(left, dictionary, optional, compression):
        new_pages.append(page)
        uncompressed += size
    sizes = {
        MetaField.NUM_VALUES: i64(len(left)),
        MetaField.UNCOMPRESSED_SIZE: i64(uncompressed),
        MetaField.COMPRESSED_SIZE: i64(sum(map(len, new_pages))),
        MetaField.DICTIONARY_PAGE: i64(len(MAGIC)),
        MetaField.DATA_PAGE: i64(len(MAGIC) + len(dictionary.page)),
        MetaField.STATISTICS: thrift.struct(
            _statistics(column.elements[0], left, dictionary, meta)
        ),
    }
    kept = (MetaField.TYPE, MetaField.PATH, MetaField.CODEC)
    encodings = _encodings(dictionary, len(new_pages) - 1)
    return EncodedChunk({**{k: meta[k] for k in kept}, **encodings, **sizes}, new_pages)


def _has_known_order(column: TopColumn) -> bool:
    element, kind = column.elements[0], column.field.type
    stored_as = number(element, ElementField.TYPE)
    if stored_as == footers.BYTE_ARRAY:
        return kind in (pa.string(), pa.binary())
    fixed = stored_as in _WIDTHS or stored_as == footers.FIXED_LEN_BYTE_ARRAY
    return fixed and is_ordered(element) and not _is_float_or_null(kind)


def _is_float_or_null(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_null(kind))


def _read_dictionary(pages: memoryview, meta: Struct) -> _Dictionary:
    header, length = thrift.parse_prefix(pages)
    uncompressed, end = number(header, 2), length + number(header, 3)
    body = bytes(pages[length:end])
    codec = _CODECS[number(meta, MetaField.CODEC)]
    if codec != "none":
        body = pa.Codec(codec).decompress(body, uncompressed, asbytes=True)
    about = header[7].data
    count = number(about, 1)
    if not 0 <= count <= len(body):
        raise NotSpliceableError(f"{count} entries of a dictionary cannot be in {len(body)} bytes")
    return _Dictionary(pages[:end], length + uncompressed, body, count, number(about, 2))


def _indices(
    column: TopColumn, data_pages: memoryview, meta: Struct, dictionary: _Dictionary
) -> pa.Array | None:
    """Indices into the dictionary, NULL where the row is NULL; None if not all pages have them.

    pyarrow returns indices for byte arrays only, so the pages are read as those of a byte-array
    column whose dictionary has as many entries.
    """
    entries = np.empty((dictionary.count, 2), dtype="<u4")
    entries[:, 0] = 4
    entries[:, 1] = np.arange(dictionary.count)
    header: Struct = {7: thrift.struct({1: i32(dictionary.count), 2: i32(dictionary.encoding)})}
    codec = _CODECS[number(meta, MetaField.CODEC)]
    stand_in = _page(_DICTIONARY_PAGE, header, entries.tobytes(), Compression(codec, None))
    data = b"".join([MAGIC, stand_in, data_pages])
    name = b"c"
    element: Struct = {
        ElementField.TYPE: i32(footers.BYTE_ARRAY),
        ElementField.REPETITION: i32(footers.repetition(column.elements[0])),
        ElementField.NAME: thrift.binary(name),
    }
    described: Struct = {
        MetaField.TYPE: i32(footers.BYTE_ARRAY),
        MetaField.ENCODINGS: meta[MetaField.ENCODINGS],
        MetaField.PATH: list_of(thrift.BINARY, [name]),
        MetaField.CODEC: meta[MetaField.CODEC],
        MetaField.NUM_VALUES: meta[MetaField.NUM_VALUES],
        MetaField.UNCOMPRESSED_SIZE: meta[MetaField.UNCOMPRESSED_SIZE],
        MetaField.COMPRESSED_SIZE: i64(len(data) - len(MAGIC)),
        MetaField.DATA_PAGE: i64(len(MAGIC) + len(stand_in)),
        MetaField.DICTIONARY_PAGE: i64(len(MAGIC)),
    }
    rows = number(meta, MetaField.NUM_VALUES)
    footer = footers.single_column_footer((element,), [described], rows, None)
    column_read = read_pages(pa.py_buffer(data), footer, read_dictionary=[name.decode()])
    if any(len(chunk.dictionary) != dictionary.count for chunk in column_read.chunks):
        return None
    return pa.concat_arrays([chunk.indices for chunk in column_read.chunks])


def _data_pages(
    indices: pa.Array, dictionary: _Dictionary, optional: bool, compression: Compression
) -> Iterator[tuple[bytes, int]]:
    """Data pages (version 1) and their uncompressed sizes, headers included."""
    rows = min(_PAGE_ROWS, _PAGE_BYTES * 8 // dictionary.width)
    for start in range(0, len(indices), rows):
        part = indices.slice(start, rows)
        levels = _definition_levels(part) if optional else b""
        present = part.drop_null().to_numpy()
        packed = encode_hybrid(present, dictionary.width)
        body = b"".join([levels, bytes([dictionary.width]), packed])
        about = {
            1: i32(len(part)),
            2: i32(_index_encoding(dictionary)),
            3: i32(footers.RLE),
            4: i32(footers.RLE),
        }
        page = _page(_DATA_PAGE, {5: thrift.struct(about)}, body, compression)
        _, header_size = thrift.parse_prefix(page)
        yield page, header_size + len(body)


def _definition_levels(part: pa.Array) -> bytes:
    if part.null_count == 0:
        levels = repeated(1, len(part), 1)
    else:
        present = part.is_valid().to_numpy(zero_copy_only=False)
        groups = -(-len(part) // 8)
        levels = varint(groups << 1 | 1) + bit_packed(present, 1)
    return len(levels).to_bytes(4, "little") + levels


def _page(kind: int, header: Struct, body: bytes, compression: Compression) -> bytes:
    stored = body
    if compression.codec != "none":
        codec = pa.Codec(compression.codec, compression_level=compression.level)
        stored = codec.compress(body, asbytes=True)
    fields = {1: i32(kind), 2: i32(len(body)), 3: i32(len(stored)), **header}
    return thrift.serialize(fields) + stored


def _index_encoding(dictionary: _Dictionary) -> int:
    if dictionary.encoding == footers.PLAIN_DICTIONARY:
        return footers.PLAIN_DICTIONARY
    return footers.RLE_DICTIONARY


def _encodings(dictionary: _Dictionary, data_pages: int) -> Struct:
    index = _index_encoding(dictionary)
    pages: list[Any] = [
        {1: i32(_DICTIONARY_PAGE), 2: i32(dictionary.encoding), 3: i32(1)},
        {1: i32(_DATA_PAGE), 2: i32(index), 3: i32(data_pages)},
    ]
    used = sorted({dictionary.encoding, footers.RLE, index})
    return {
        MetaField.ENCODINGS: list_of(I32, used),
        MetaField.ENCODING_STATS: list_of(STRUCT, pages),
    }


def _statistics(
    element: Struct, indices: pa.Array, dictionary: _Dictionary, before: Struct
) -> Struct:
    """Those of the rows that are left; ``before`` describes the chunk with all rows."""
    statistics: Struct = {StatisticsField.NULL_COUNT: i64(indices.null_count)}
    present: npt.NDArray[np.int32] = indices.drop_null().to_numpy()
    if len(present) == 0:
        return statistics
    used = _used_entries(present, dictionary.count)
    # The rows that are left have all values that there were.
    bounds = exact_bounds(element, before) if len(used) == dictionary.count else None
    low, high = bounds or _extremes(element, used, dictionary)
    statistics[StatisticsField.MAX_VALUE] = thrift.binary(high)
    statistics[StatisticsField.MIN_VALUE] = thrift.binary(low)
    return statistics


def _extremes(
    element: Struct, used: npt.NDArray[np.intp], dictionary: _Dictionary
) -> tuple[bytes, bytes]:
    """The least and the greatest of the entries ``used``."""
    entries = encodings.decoded(element, dictionary.body, dictionary.count)
    extremes = pc.min_max(entries.take(pa.array(used)))
    low, high = (_raw(element, entries, extremes[name], dictionary.body) for name in ("min", "max"))
    return low, high


def _used_entries(indices: npt.NDArray[np.int32], count: int) -> npt.NDArray[np.intp]:
    """Which of ``count`` entries occur; usually all of them do, within the first rows."""
    used = np.zeros(count, dtype=np.bool_)
    for start in range(0, len(indices), _BLOCK):
        used[indices[start : start + _BLOCK]] = True
        if used.all():
            break
    return np.flatnonzero(used)


def _raw(element: Struct, entries: pa.Array, entry: pa.Scalar, body: bytes) -> bytes:
    """``entry`` in the encoding of statistics."""
    stored_as = number(element, ElementField.TYPE)
    if stored_as == footers.BYTE_ARRAY:
        raw: bytes = entry.as_buffer().to_pybytes()
        return raw
    width = _WIDTHS.get(stored_as) or number(element, ElementField.TYPE_LENGTH)
    start = pc.index(entries, entry).as_py() * width
    return body[start : start + width]
