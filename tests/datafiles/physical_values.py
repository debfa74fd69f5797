"""The values of a parquet file as they are stored: numbers as integers of the same bits, and bytes.

A copy of the file gets a footer in which no leaf has a logical type, FLOAT and DOUBLE are INT32 and
INT64, and INT96 is FIXED_LEN_BYTE_ARRAY: they are encoded alike.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.datafiles.parquet import footer as footers
from spark_jobs.datafiles.parquet import thrift
from spark_jobs.datafiles.parquet.footer import ElementField, FileField, number
from spark_jobs.datafiles.parquet.thrift import STRUCT, Struct

_SAME_BITS = {footers.FLOAT: footers.INT32, footers.DOUBLE: footers.INT64}


def physical_rows(path: Path) -> list[dict[str, Any]]:
    """All rows; nested values as pyarrow has them."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[-8:-4], "little")
    fields, _ = thrift.parse(raw[-8 - length : -8])
    elements = [_physical(each) for each in footers.items(fields[FileField.SCHEMA])]
    fields = {k: v for k, v in fields.items() if k != FileField.PROPERTIES}
    fields[FileField.SCHEMA] = thrift.list_of(STRUCT, elements)
    copy = pa.BufferReader(raw[: -8 - length] + footers.framed(fields))
    rows: list[dict[str, Any]] = pq.ParquetFile(copy).read().to_pylist()
    return rows


def _physical(element: Struct) -> Struct:
    if ElementField.TYPE not in element:
        return element
    kept = (ElementField.TYPE, ElementField.TYPE_LENGTH, ElementField.REPETITION, ElementField.NAME)
    plain = {field: element[field] for field in kept if field in element}
    kind = number(element, ElementField.TYPE)
    if kind == footers.INT96:
        plain[ElementField.TYPE_LENGTH] = thrift.i32(12)
        kind = footers.FIXED_LEN_BYTE_ARRAY
    plain[ElementField.TYPE] = thrift.i32(_SAME_BITS.get(kind, kind))
    return plain
