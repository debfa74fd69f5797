"""Partition values in Paimon's ``BinaryRow`` form, as manifests hold them.

After Paimon's ``BinaryRow`` and ``BinaryRowSerializer``: the number of fields (4 bytes, big
endian), a bit set of NULLs behind 8 bits of row kind, 8 bytes for each field, and what does not fit
there.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any, Final

from spark_jobs.errors import NotSupportedError

_HEADER_BITS: Final = 8
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - Paimon's TIMESTAMP has no time zone
_COMPACT_DECIMAL: Final = 18
_EXACT: Final = Context(prec=100)
_TYPE: Final = re.compile(r"([A-Z_]+)(?: *\( *(\d+)(?: *, *(\d+))? *\))?")
_FIXED: Final = {
    "BOOLEAN": "<?",
    "TINYINT": "<b",
    "SMALLINT": "<h",
    "INT": "<i",
    "INTEGER": "<i",
    "BIGINT": "<q",
    "FLOAT": "<f",
    "DOUBLE": "<d",
    "DATE": "<i",
}
_TEXT: Final = ("STRING", "VARCHAR", "CHAR")


def decoded(row: bytes, types: Sequence[str]) -> tuple[Any, ...]:
    """The values of a row whose fields have these types of Paimon's (``DATE``, ``DECIMAL(10, 2)``).

    Raises:
        ValueError, struct.error, OverflowError: the row is damaged.
        NotSupportedError: a type that can be no partition column here.
    """
    if not types:
        return ()
    (arity,) = struct.unpack_from(">i", row)
    if arity != len(types):
        raise ValueError(f"a row has {arity} fields, not {len(types)}")
    data = row[4:]
    null_bytes = (arity + 63 + _HEADER_BITS) // 64 * 8
    if len(data) < null_bytes + 8 * arity:
        raise ValueError("a row is cut off")
    values: list[Any] = []
    for index, kind in enumerate(types):
        byte, bit = divmod(index + _HEADER_BITS, 8)
        is_null = data[byte] >> bit & 1
        values.append(None if is_null else _value(data, null_bytes + 8 * index, kind))
    return tuple(values)


def single(number: float) -> float:
    """The value of a FLOAT in as few digits as tell it from its neighbours: 12.3, not 12.30000019.

    Raises:
        OverflowError: no FLOAT is as large.
    """
    stored = struct.pack("<f", number)
    short = (float(f"{number:.{digits}g}") for digits in range(6, 9))
    return next((each for each in short if struct.pack("<f", each) == stored), number)


def _value(data: bytes, offset: int, kind: str) -> Any:
    parsed = _TYPE.match(kind.upper())
    name = parsed.group(1) if parsed else kind
    if name in _FIXED:
        (number,) = struct.unpack_from(_FIXED[name], data, offset)
        if name == "FLOAT":
            return single(number)
        return date(1970, 1, 1) + timedelta(days=number) if name == "DATE" else number
    if name in _TEXT:
        return _bytes(data, offset).decode("utf-8")
    if name in ("DECIMAL", "NUMERIC") and parsed:
        return _decimal(data, offset, int(parsed.group(2) or 10), int(parsed.group(3) or 0))
    if name in ("TIMESTAMP", "TIMESTAMP_LTZ") and parsed:
        return _timestamp(data, offset, int(parsed.group(2) or 6))
    raise NotSupportedError(
        f"Partitions by a column of the type {kind} are not read.",
        "Partition the table by a date, a number or a string.",
    )


def _bytes(data: bytes, offset: int) -> bytes:
    """Up to 7 bytes stand in the field itself, longer ones behind the fields."""
    (word,) = struct.unpack_from("<Q", data, offset)
    if word >> 63:
        return data[offset : offset + (word >> 56 & 0x7F)]
    start, size = word >> 32, word & 0xFFFFFFFF
    if start + size > len(data):
        raise ValueError("a row is cut off")
    return data[start : start + size]


def _decimal(data: bytes, offset: int, precision: int, scale: int) -> Decimal:
    if precision <= _COMPACT_DECIMAL:
        (unscaled,) = struct.unpack_from("<q", data, offset)
    else:
        unscaled = int.from_bytes(_bytes(data, offset), "big", signed=True)
    return Decimal(unscaled).scaleb(-scale, context=_EXACT)


def _timestamp(data: bytes, offset: int, precision: int) -> datetime:
    (word,) = struct.unpack_from("<q", data, offset)
    if precision <= 3:
        return _EPOCH + timedelta(milliseconds=word)
    (millis,) = struct.unpack_from("<q", data, word >> 32)
    return _EPOCH + timedelta(milliseconds=millis, microseconds=(word & 0xFFFFFFFF) // 1000)
