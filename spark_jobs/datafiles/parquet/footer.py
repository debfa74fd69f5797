"""The footer of a parquet file as stored; unknown fields are kept.

Field ids follow ``parquet.thrift`` of Apache Parquet. pyarrow reads footers, but can neither move a
column chunk nor write a footer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.datafiles.parquet import thrift
from spark_jobs.datafiles.parquet.thrift import STRUCT, Struct, Value, i64, list_of

MAGIC: Final = b"PAR1"
TRAILER: Final = 8
_GUESS: Final = 64 * 1024
_MAX_GROUP_ROWS: Final = 2**26

# Physical types and encodings.
BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY = range(8)
PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY = 0, 2, 3, 8
REQUIRED, OPTIONAL, REPEATED = range(3)

# Fields of LogicalType, up to FLOAT16: pyarrow refuses files with others, whatever is read of them.
_KNOWN_TYPES: Final = frozenset(range(1, 16))

# What fields of unexpected types, or wrong sizes and counts, raise.
MISUNDERSTOOD = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)


class FileField:
    """Field ids of FileMetaData."""

    VERSION, SCHEMA, NUM_ROWS, ROW_GROUPS, PROPERTIES, CREATED_BY, COLUMN_ORDERS = range(1, 8)
    ENCRYPTION = 8


class ElementField:
    """Field ids of SchemaElement."""

    TYPE, TYPE_LENGTH, REPETITION, NAME, NUM_CHILDREN = range(1, 6)
    CONVERTED_TYPE, SCALE, PRECISION, FIELD_ID, LOGICAL_TYPE = range(6, 11)


class GroupField:
    """Field ids of RowGroup."""

    COLUMNS, TOTAL_BYTE_SIZE, NUM_ROWS, SORTING_COLUMNS, FILE_OFFSET = range(1, 6)
    TOTAL_COMPRESSED_SIZE, ORDINAL = 6, 7


class ChunkField:
    """Field ids of ColumnChunk."""

    FILE_PATH, FILE_OFFSET, META_DATA = 1, 2, 3
    PAGE_INDEXES = (4, 5, 6, 7)
    ENCRYPTION = (8, 9)


class MetaField:
    """Field ids of ColumnMetaData."""

    TYPE, ENCODINGS, PATH, CODEC, NUM_VALUES = range(1, 6)
    UNCOMPRESSED_SIZE, COMPRESSED_SIZE, PROPERTIES, DATA_PAGE = range(6, 10)
    INDEX_PAGE, DICTIONARY_PAGE, STATISTICS, ENCODING_STATS = range(10, 14)
    BLOOM_FILTER = (14, 15)
    SIZE_STATISTICS = 16


class StatisticsField:
    """Field ids of Statistics."""

    NULL_COUNT, MAX_VALUE, MIN_VALUE, MAX_IS_EXACT, MIN_IS_EXACT = 3, 5, 6, 7, 8
    # Each has a deprecated one of the same meaning.
    MINIMA = (2, MIN_VALUE)
    BOUNDS = (1, MAX_VALUE, *MINIMA)


# How the writers begin their names whose bounds of FIXED_LEN_BYTE_ARRAY have been found right.
_ORDERS_FIXED: Final = (b"parquet-mr ", b"parquet-cpp-arrow ", b"parquet-rs ", b"DuckDB ")


class NotSpliceableError(Exception):
    """The file has a feature that rules out copying its column chunks one by one."""


@dataclass(frozen=True, slots=True)
class TopColumn:
    """A column of the table: its part of the schema, and the leaves whose chunks hold it.

    ``elements`` are its SchemaElements in depth-first order, ``leaves`` the indices of its chunks
    in every row group. ``field`` has its Arrow type, derived from the parquet types alone; that of
    INT96 is a timestamp in microseconds.
    """

    name: str
    elements: tuple[Struct, ...]
    leaves: range
    field: pa.Field

    @property
    def is_flat(self) -> bool:
        """Whether it is a single leaf with at most one value per row."""
        return len(self.elements) == 1 and repetition(self.elements[0]) != REPEATED


@dataclass(frozen=True, slots=True)
class Footer:
    """A parsed footer."""

    fields: Struct
    columns: tuple[TopColumn, ...]

    @property
    def row_groups(self) -> list[Struct]:
        """The RowGroup structures."""
        return items(self.fields[FileField.ROW_GROUPS])

    @property
    def has_column_orders(self) -> bool:
        """Whether every leaf's minimum and maximum use the order that its type defines."""
        orders = self.fields.get(FileField.COLUMN_ORDERS)
        leaves = sum(len(column.leaves) for column in self.columns)
        return orders is not None and sum(1 in each for each in items(orders)) == leaves

    @property
    def has_fixed_orders(self) -> bool:
        """Whether this is so of FIXED_LEN_BYTE_ARRAY, too.

        Polars 1.44 states wrong bounds of its long decimals: so it is known of some writers alone.
        """
        created_by = self.fields.get(FileField.CREATED_BY)
        return created_by is not None and created_by.data.startswith(_ORDERS_FIXED)


def read_footer(file: pa.NativeFile) -> Footer:
    """The footer of an open parquet file.

    Raises:
        NotSpliceableError: it has something that is not supported; the message names it.
    """
    size = file.size()
    tail = file.read_at(min(size, _GUESS), max(size - _GUESS, 0))
    if tail[-4:] != MAGIC or size < len(MAGIC) + TRAILER:
        raise NotSpliceableError("its footer is encrypted, or it is not a parquet file")
    length = int.from_bytes(tail[-TRAILER:-4], "little")
    if length + TRAILER > size:
        raise NotSpliceableError("its footer would be longer than the file")
    if length + TRAILER > len(tail):
        tail = file.read_at(length + TRAILER, size - length - TRAILER)
    return parse_footer(tail[-TRAILER - length : -TRAILER])


def parse_footer(raw: bytes) -> Footer:
    """The footer in ``raw``, if all of it is supported.

    Raises:
        NotSpliceableError: see ``read_footer``.
    """
    try:
        fields, length = thrift.parse(raw)
        if length != len(raw) or thrift.serialize(fields) != raw:
            raise NotSpliceableError("its footer would not be written the same way again")
        _require_plain_file(fields)
        fields[FileField.SCHEMA] = list_of(STRUCT, _known_types(items(fields[FileField.SCHEMA])))
        return Footer(fields, _top_columns(fields))
    except (thrift.ThriftError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise NotSpliceableError(f"its footer is not understood: {error!r}") from error


def readable_metadata(stream: pa.NativeFile) -> pq.FileMetaData:
    """The footer of an open file as pyarrow's metadata, without types that pyarrow may not know.

    Raises:
        pa.ArrowInvalid, OSError: the file is damaged.
    """
    try:
        return pq.ParquetFile(stream).metadata
    except (pa.ArrowException, OSError):
        try:
            return as_pyarrow(read_footer(stream).fields)
        except NotSpliceableError:
            pass
        raise


def _known_types(elements: list[Struct]) -> list[Struct]:
    """Elements of a schema without the annotations of later types, such as VARIANT."""
    return [
        {k: v for k, v in element.items() if k != ElementField.LOGICAL_TYPE}
        if ElementField.LOGICAL_TYPE in element
        and not {*element[ElementField.LOGICAL_TYPE].data} <= _KNOWN_TYPES
        else element
        for element in elements
    ]


def framed(footer: Struct) -> bytes:
    """The end of a file: the footer, its length, the magic number."""
    raw = thrift.serialize(footer)
    return raw + len(raw).to_bytes(4, "little") + MAGIC


def as_pyarrow(footer: Struct) -> pq.FileMetaData:
    """A footer as pyarrow's metadata."""
    return pq.read_metadata(pa.BufferReader(MAGIC + framed(footer)))


def items(value: Value) -> list[Struct]:
    """The elements of a list of structures."""
    found: list[Struct] = value.data.items
    return found


def number(fields: Struct, field_id: int, default: int = 0) -> int:
    """An integer field."""
    value = fields.get(field_id)
    return default if value is None else int(value.data)


def repetition(element: Struct) -> int:
    """REQUIRED, OPTIONAL or REPEATED."""
    return number(element, ElementField.REPETITION, REQUIRED)


def chunks_of(group: Struct) -> list[Struct]:
    """The ColumnChunk structures of a row group."""
    return items(group[GroupField.COLUMNS])


def meta_of(chunk: Struct) -> Struct:
    """The ColumnMetaData of a chunk."""
    found: Struct = chunk[ChunkField.META_DATA].data
    return found


def chunk_range(meta: Struct) -> tuple[int, int]:
    """Where a chunk's pages start and end in the file, in bytes."""
    start = number(meta, MetaField.DATA_PAGE)
    dictionary = number(meta, MetaField.DICTIONARY_PAGE)
    if 0 < dictionary < start:
        start = dictionary
    return start, start + number(meta, MetaField.COMPRESSED_SIZE)


def moved(meta: Struct, distance: int) -> Struct:
    """The metadata of a chunk whose pages lie ``distance`` bytes further on.

    Bloom filters are left out.
    """
    result = {k: v for k, v in meta.items() if k not in MetaField.BLOOM_FILTER}
    for field in (MetaField.DATA_PAGE, MetaField.INDEX_PAGE, MetaField.DICTIONARY_PAGE):
        if number(meta, field) > 0:
            result[field] = i64(number(meta, field) + distance)
        elif field != MetaField.DATA_PAGE:
            result.pop(field, None)
    return result


def is_all_dictionary(meta: Struct) -> bool:
    """Whether every data page of a chunk is certainly dictionary-encoded."""
    if number(meta, MetaField.DICTIONARY_PAGE) <= 0:
        return False
    statistics = meta.get(MetaField.ENCODING_STATS)
    if statistics is not None:
        data_pages = [each for each in items(statistics) if number(each, 1) in (0, 3)]
        encodings = {number(each, 2) for each in data_pages}
        return bool(encodings) and encodings <= {PLAIN_DICTIONARY, RLE_DICTIONARY}
    # BIT_PACKED is an encoding of levels.
    return set(meta[MetaField.ENCODINGS].data.items) <= {PLAIN_DICTIONARY, RLE, 4}


def single_column_footer(
    elements: tuple[Struct, ...], metas: list[Struct], rows: int, created_by: Value | None
) -> Struct:
    """A footer for one column in one row group.

    ``created_by`` is kept because reading pages depends on it.
    """
    root: Struct = {
        ElementField.NAME: thrift.binary(b"schema"),
        ElementField.NUM_CHILDREN: thrift.i32(1),
    }
    chunks: list[Struct] = [
        {ChunkField.FILE_OFFSET: i64(0), ChunkField.META_DATA: thrift.struct(meta)}
        for meta in metas
    ]
    size = sum(number(meta, MetaField.UNCOMPRESSED_SIZE) for meta in metas)
    group: Struct = {
        GroupField.COLUMNS: list_of(STRUCT, chunks),
        GroupField.TOTAL_BYTE_SIZE: i64(size),
        GroupField.NUM_ROWS: i64(rows),
    }
    footer: Struct = {
        FileField.VERSION: thrift.i32(2),
        FileField.SCHEMA: list_of(STRUCT, [root, *elements]),
        FileField.NUM_ROWS: i64(rows),
        FileField.ROW_GROUPS: list_of(STRUCT, [group]),
    }
    if created_by is not None:
        footer[FileField.CREATED_BY] = created_by
    return footer


def _require_plain_file(fields: Struct) -> None:
    if FileField.ENCRYPTION in fields:
        raise NotSpliceableError("it is encrypted")
    if _is_of_old_writer(fields):
        raise NotSpliceableError("its writer is old, and readers know its chunks by its name")
    leaves = sum(ElementField.TYPE in each for each in items(fields[FileField.SCHEMA]))
    for group in items(fields[FileField.ROW_GROUPS]):
        if number(group, GroupField.NUM_ROWS) > _MAX_GROUP_ROWS:
            raise NotSpliceableError("a row group has too many rows")
        if len(chunks_of(group)) != leaves:
            raise NotSpliceableError("a row group does not have a chunk for each column")
        for chunk in chunks_of(group):
            if ChunkField.FILE_PATH in chunk or any(f in chunk for f in ChunkField.ENCRYPTION):
                raise NotSpliceableError("a column is encrypted or in another file")
            meta_of(chunk)


def _is_of_old_writer(fields: Struct) -> bool:
    """Whether readers work around defects of the writer that made the file.

    Such are Impala, parquet-mr before 1.10, and parquet-cpp before it became part of Arrow.
    """
    created_by = fields.get(FileField.CREATED_BY)
    text = created_by.data.decode(errors="replace") if created_by else ""
    old = re.match(r"parquet-mr(?! version (?:1\.[1-9]\d|[2-9]))|parquet-cpp version|impala", text)
    return old is not None


def _top_columns(fields: Struct) -> tuple[TopColumn, ...]:
    without_properties = {k: v for k, v in fields.items() if k != FileField.PROPERTIES}
    try:
        schema = as_pyarrow(without_properties).schema.to_arrow_schema()
    except (pa.ArrowException, OSError) as error:
        raise NotSpliceableError(f"pyarrow does not read it: {error}") from None
    elements = items(fields[FileField.SCHEMA])
    columns: list[TopColumn] = []
    position, leaf = 1, 0
    for as_read in schema:
        end = _subtree_end(elements, position)
        part = tuple(elements[position:end])
        leaves = sum(ElementField.TYPE in each for each in part)
        name = part[0][ElementField.NAME].data.decode()
        is_int96 = number(part[0], ElementField.TYPE, -1) == INT96
        field = as_read.with_type(pa.timestamp("us")) if is_int96 else as_read
        columns.append(TopColumn(name, part, range(leaf, leaf + leaves), field))
        position, leaf = end, leaf + leaves
    if position != len(elements):
        raise NotSpliceableError("its schema is not a tree")
    return tuple(columns)


def _subtree_end(elements: list[Struct], start: int) -> int:
    end = start + 1
    for _ in range(number(elements[start], ElementField.NUM_CHILDREN)):
        end = _subtree_end(elements, end)
    return end
