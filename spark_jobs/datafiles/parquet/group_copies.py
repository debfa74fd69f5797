"""Row groups that are written from chunks as they are stored, byte for byte or encoded in memory.

Page indexes and bloom filters are left out, as they would point to other places.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from spark_jobs.datafiles.parquet import footer as footers
from spark_jobs.datafiles.parquet import thrift
from spark_jobs.datafiles.parquet.column_codec import EncodedChunk, Window
from spark_jobs.datafiles.parquet.footer import (
    MAGIC,
    ChunkField,
    GroupField,
    MetaField,
    NotSpliceableError,
    number,
)
from spark_jobs.datafiles.parquet.thrift import STRUCT, Struct, Value, i64, list_of

# A row group is read at once; this many bytes in its range may belong to something else.
_GAP_BYTES: Final = 1024 * 1024
# Fields of PageHeader by the type of the page: its data header, whose first field counts values.
_DATA_HEADERS: Final = {0: 5, 3: 8}
_PAGE_TYPE, _STORED_SIZE, _CHECKSUM = 1, 3, 4


def group_range(group: Struct) -> tuple[int, int]:
    """The byte range of a row group's chunks in the file.

    Raises:
        NotSpliceableError: the chunks are scattered over the file.
    """
    ranges = [footers.chunk_range(footers.meta_of(chunk)) for chunk in footers.chunks_of(group)]
    start, end = min(low for low, _ in ranges), max(high for _, high in ranges)
    if start < len(MAGIC) or end - start > sum(high - low for low, high in ranges) + _GAP_BYTES:
        raise NotSpliceableError("the chunks of a row group do not lie together")
    return start, end


def read_group(file: pa.NativeFile, group: Struct) -> Window:
    """The bytes of a row group's chunks.

    Raises:
        NotSpliceableError: the chunks are scattered over the file.
    """
    start, end = group_range(group)
    start -= len(MAGIC)
    file.seek(start)
    return Window(start, file.read_buffer(end - start))


def read_chunks(file: pa.NativeFile, metas: Sequence[Struct]) -> Window:
    """The bytes of the chunks of one column, of which there may be none.

    Raises:
        NotSpliceableError: the chunks are scattered over the file.
    """
    ranges = [footers.chunk_range(meta) for meta in metas]
    if not ranges:
        return Window(0, pa.py_buffer(b""))
    start, end = min(low for low, _ in ranges), max(high for _, high in ranges)
    if start < len(MAGIC) or end - start > sum(high - low for low, high in ranges) + _GAP_BYTES:
        raise NotSpliceableError("the chunks of a column do not lie together")
    start -= len(MAGIC)
    file.seek(start)
    return Window(start, file.read_buffer(end - start))


def copied(window: Window, meta: Struct) -> EncodedChunk:
    """A chunk as it is stored."""
    start, _ = footers.chunk_range(meta)
    return EncodedChunk(footers.moved(meta, len(MAGIC) - start), [window.pages(meta)])


def require_whole_pages(window: Window, meta: Struct) -> None:
    """Check that a chunk is a sequence of pages with as many values as its metadata says.

    Raises:
        NotSpliceableError: it is not, or the checksum of a page is wrong.
        ThriftError: there is something else where a page should begin.
    """
    pages = window.pages(meta)
    position = values = 0
    while position < len(pages):
        header, length = thrift.parse_prefix(pages[position:])
        if number(header, _STORED_SIZE, -1) < 0:
            raise NotSpliceableError("a page has no size")
        start, position = position + length, position + length + number(header, _STORED_SIZE)
        about = _DATA_HEADERS.get(number(header, _PAGE_TYPE, -1))
        if about is not None:
            values += number(header[about].data, 1)
        checksum = header.get(_CHECKSUM)
        if checksum is not None and zlib.crc32(pages[start:position]) != checksum.data % 2**32:
            raise NotSpliceableError("the checksum of a page is wrong")
    if position != len(pages) or values != number(meta, MetaField.NUM_VALUES):
        raise NotSpliceableError("its pages are not those that its footer describes")


def write_chunk(
    stream: pa.NativeFile, old: Struct, path: Value | None, chunk: EncodedChunk
) -> Struct:
    """Write the pages of a chunk; returns its ColumnChunk, made from the one that it replaces.

    ``path`` is its path in the schema; None: that of ``old``.
    """
    start = int(stream.tell())
    for page in chunk.pages:
        stream.write(page)
    meta = footers.moved(chunk.meta, start - len(MAGIC))
    meta[MetaField.PATH] = footers.meta_of(old)[MetaField.PATH] if path is None else path
    kept = {k: v for k, v in old.items() if k not in ChunkField.PAGE_INDEXES}
    # Deprecated: today's writers store 0; older ones point at the chunk or right behind it.
    offset = start if number(old, ChunkField.FILE_OFFSET) else 0
    return {
        **kept,
        ChunkField.FILE_OFFSET: i64(offset),
        ChunkField.META_DATA: thrift.struct(meta),
    }


def new_group(
    old: Struct, chunks: list[Struct], rows: int, start: int, ordinal: int, *, unsorted: bool
) -> Struct:
    """The RowGroup of ``chunks``, which are written from ``start`` on, made from ``old``.

    ``unsorted``: the order of rows that ``old`` declares, if it does, need not hold.
    """
    metas = [footers.meta_of(chunk) for chunk in chunks]
    new: Struct = {
        GroupField.COLUMNS: list_of(STRUCT, chunks),
        GroupField.TOTAL_BYTE_SIZE: i64(sum(number(m, MetaField.UNCOMPRESSED_SIZE) for m in metas)),
        GroupField.NUM_ROWS: i64(rows),
        GroupField.FILE_OFFSET: i64(start),
        GroupField.TOTAL_COMPRESSED_SIZE: i64(
            sum(number(m, MetaField.COMPRESSED_SIZE) for m in metas)
        ),
        GroupField.ORDINAL: thrift.Value(thrift.I16, ordinal),
    }
    kept = {k: v for k, v in new.items() if k in old}
    group = {**old, **kept}
    if unsorted:
        group.pop(GroupField.SORTING_COLUMNS, None)
    return group
