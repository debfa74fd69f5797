"""INT96 timestamps of parquet files: the nanoseconds of a day, then its Julian day number.

pyarrow reads them as 64-bit nanoseconds, which wrap around outside the years 1677 to 2262. In
microseconds it takes the nanoseconds of the day for unsigned, although it writes negative ones
itself before 1970. Therefore they are read as what they are: 12 bytes, whose encodings are those of
FIXED_LEN_BYTE_ARRAY. Spark, too, reads microseconds.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.datafiles.parquet import footer as footers
from spark_jobs.datafiles.parquet import thrift
from spark_jobs.datafiles.parquet.footer import ElementField, TopColumn, number
from spark_jobs.datafiles.parquet.thrift import Struct
from spark_jobs.errors import NotSupportedError

BYTES: Final = pa.binary(12)
_PARTS: Final = np.dtype([("nanoseconds", "<i8"), ("day", "<i4")])
_DAY_OF_1970: Final = 2_440_588
_MICROSECONDS_OF_DAY: Final = 86_400_000_000


def is_int96(column: TopColumn) -> bool:
    """Whether the column, which is not nested, is stored as INT96."""
    return column.is_flat and number(column.elements[0], ElementField.TYPE, -1) == footers.INT96


def as_bytes(element: Struct) -> Struct:
    """The leaf ``element`` as one of bytes."""
    kind = {
        ElementField.TYPE: thrift.i32(footers.FIXED_LEN_BYTE_ARRAY),
        ElementField.TYPE_LENGTH: thrift.i32(BYTES.byte_width),
    }
    return {**element, **kind}


def timestamps(stored: pa.Array) -> pa.Array:
    """The timestamps, in microseconds and without a zone, that are stored as ``BYTES``."""
    if not len(stored):
        return pa.array([], pa.timestamp("us"))
    width = BYTES.byte_width
    raw = np.frombuffer(stored.buffers()[1], np.uint8)[stored.offset * width :]
    parts = raw[: len(stored) * width].view(_PARTS)
    of_day = parts["nanoseconds"] // 1000
    # As Spark does it: towards midnight, also from below.
    of_day += (parts["nanoseconds"] < 0) & (parts["nanoseconds"] % 1000 != 0)
    days = parts["day"].astype(np.int64) - _DAY_OF_1970
    missing = stored.is_null().to_numpy(zero_copy_only=False)
    return pa.array(days * _MICROSECONDS_OF_DAY + of_day, pa.timestamp("us"), mask=missing)


def refuse(path: str, schema: pq.ParquetSchema, columns: Collection[str] | None = None) -> None:
    """Refuse a file whose INT96 leaves pyarrow itself would have to read; None: of any column.

    Raises:
        NotSupportedError: names the first such leaf and the file.
    """
    for leaf in map(schema.column, range(len(schema))):
        is_read = columns is None or any(f"{leaf.path}.".startswith(f"{c}.") for c in columns)
        if leaf.physical_type == "INT96" and is_read:
            raise NotSupportedError(
                f"Column {leaf.path} of data file {path} is stored as INT96 timestamps, which are "
                "not supported inside of nested values and in files of old writers.",
                "Compact the table fully with another engine first.",
            )


def stored_timestamps(values: pa.Array) -> pa.Array:
    """``values``, timestamps in microseconds, as ``BYTES``."""
    numbers = values.cast(pa.int64()).fill_null(0).to_numpy()
    days, of_day = np.divmod(numbers, _MICROSECONDS_OF_DAY)
    parts = np.empty(len(values), _PARTS)
    parts["nanoseconds"] = of_day * 1000
    parts["day"] = days + _DAY_OF_1970
    missing = values.is_null().to_numpy(zero_copy_only=False)
    valid = np.packbits(~missing, bitorder="little")
    return pa.Array.from_buffers(BYTES, len(values), [pa.py_buffer(valid), pa.py_buffer(parts)])
