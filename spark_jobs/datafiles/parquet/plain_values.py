"""Values in Parquet's PLAIN encoding, such as bounds of chunks and entries of dictionaries."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from spark_jobs.datafiles.parquet import footer as footers
from spark_jobs.datafiles.parquet import thrift
from spark_jobs.datafiles.parquet.column_codec import read_pages
from spark_jobs.datafiles.parquet.footer import ElementField, MetaField, number
from spark_jobs.datafiles.parquet.thrift import I32, Struct, i32, i64

_UNCOMPRESSED = 0
_DATA_PAGE = 0


def decoded(element: Struct, body: bytes, count: int) -> pa.Array:
    """The ``count`` values in a PLAIN page's ``body``, as the Arrow type of leaf ``element``."""
    header = thrift.serialize(
        {
            1: i32(_DATA_PAGE),
            2: i32(len(body)),
            3: i32(len(body)),
            5: thrift.struct(
                {
                    1: i32(count),
                    2: i32(footers.PLAIN),
                    3: i32(footers.RLE),
                    4: i32(footers.RLE),
                }
            ),
        }
    )
    page = header + body
    meta: Struct = {
        MetaField.TYPE: element[ElementField.TYPE],
        MetaField.ENCODINGS: thrift.list_of(I32, [footers.PLAIN]),
        MetaField.PATH: thrift.list_of(thrift.BINARY, [element[ElementField.NAME].data]),
        MetaField.CODEC: i32(_UNCOMPRESSED),
        MetaField.NUM_VALUES: i64(count),
        MetaField.UNCOMPRESSED_SIZE: i64(len(page)),
        MetaField.COMPRESSED_SIZE: i64(len(page)),
        MetaField.DATA_PAGE: i64(len(footers.MAGIC)),
    }
    required = {**element, ElementField.REPETITION: i32(footers.REQUIRED)}
    footer = footers.single_column_footer((required,), [meta], count, None)
    column = read_pages(pa.py_buffer(footers.MAGIC + page), footer)
    return pa.concat_arrays(column.chunks)


def joined(element: Struct, values: Sequence[bytes]) -> bytes:
    """The body of a PLAIN page of ``values``, each encoded as in statistics: without its length.

    Not for booleans.
    """
    if number(element, ElementField.TYPE) != footers.BYTE_ARRAY:
        return b"".join(values)
    return b"".join(len(value).to_bytes(4, "little") + value for value in values)
