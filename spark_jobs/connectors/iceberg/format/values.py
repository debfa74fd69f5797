"""Values in manifests and schemas, checked and as Python values. Runs on executors.

Follows the Iceberg specification, "Appendix D: Single-value serialization", and its partition
values. A value that Python cannot hold is None.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from typing import Any, Final

import pyarrow as pa

from spark_jobs.connectors.iceberg.format.schema import IcebergType, arrow_type, decimal_of

_MAXIMUM_LONG: Final = 2**63 - 1
_EPOCH_DAY: Final = dt.date(1970, 1, 1)
_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - TIMESTAMP_NTZ has no zone
_EXACT: Final = Context(prec=40)
_DAY: Final = 86_400_000_000
_PLAIN: Final = {
    "boolean": bool,
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "string": str,
    "binary": bytes,
}


def require_number(what: str, value: Any) -> None:
    """Check a number that is not negative."""
    if type(value) is not int or not 0 <= value <= _MAXIMUM_LONG:
        raise ValueError(f"{what}: {str(value)[:100]!r} is not a number that it can have")


def require_number_or_none(what: str, value: Any) -> None:
    """Check a number that may be missing."""
    # Readers of Iceberg take a negative count for none.
    if value is not None and type(value) is not int:
        raise ValueError(f"{what}: {str(value)[:100]!r} is not a number")


def require_row_id(record: Mapping[str, Any]) -> None:
    """Check the id of a first row, if there is one."""
    first_row_id = record.get("first_row_id")
    if first_row_id is not None:
        require_number("first_row_id", first_row_id)


def require_text(what: str, value: Any) -> None:
    """Check a text that is not empty."""
    if type(value) is not str or not value:
        raise ValueError(f"{what}: {str(value)[:100]!r} is not text")


def bound(kind: IcebergType, data: bytes) -> Any:
    """A lower or upper bound; int and float bounds of promoted columns keep their old width.

    Raises:
        ValueError, struct.error: the bytes are no value of the type.
    """
    reader = _BOUNDS.get(kind.name)
    return reader(data) if reader else _decimal(kind, signed(data))


def _integer(data: bytes) -> int:
    if len(data) not in (4, 8):
        raise ValueError(f"a number of {len(data)} bytes")
    return int.from_bytes(data, "little", signed=True)


def _micros(data: bytes) -> int:
    """Bounds of a column that was a DATE are days."""
    return _integer(data) * (_DAY if len(data) == 4 else 1)


def _floating(data: bytes) -> float:
    value: float = struct.unpack("<f" if len(data) == 4 else "<d", data)[0]
    return value


def _decimal(kind: IcebergType, unscaled: int) -> Decimal:
    _, scale = decimal_of(kind)
    return Decimal(unscaled).scaleb(-scale, _EXACT)


def date(days: int) -> dt.date | None:
    """The day that is ``days`` after 1970-01-01."""
    try:
        return _EPOCH_DAY + dt.timedelta(days=days)
    except OverflowError:
        return None


def timestamp(micros: int, zone: dt.tzinfo | None = None) -> dt.datetime | None:
    """The time that is ``micros`` after 1970-01-01, in UTC or without a zone."""
    try:
        return (_EPOCH + dt.timedelta(microseconds=micros)).replace(tzinfo=zone)
    except OverflowError:
        return None


_BOUNDS: Final[Mapping[str, Callable[[bytes], Any]]] = {
    "boolean": lambda data: data != b"\0",
    "int": _integer,
    "long": _integer,
    "float": _floating,
    "double": _floating,
    "date": lambda data: date(_integer(data)),
    "timestamp": lambda data: timestamp(_micros(data)),
    "timestamptz": lambda data: timestamp(_micros(data), dt.UTC),
    "string": lambda data: data.decode(),
    "binary": bytes,
}


def partition_value(kind: IcebergType, value: Any) -> Any:
    """The value of a partition field of the type ``kind``, from its Avro value.

    Raises:
        TypeError, ValueError: it is no value of the type.
    """
    if value is None:
        return None
    if kind.name == "date":
        return date(_number(value))
    if kind.name in ("timestamp", "timestamptz"):
        return timestamp(_number(value), dt.UTC if kind.name == "timestamptz" else None)
    if kind.name in _PLAIN:
        if type(value) is not _PLAIN[kind.name]:
            raise TypeError(f"a partition value of the type {type(value).__name__}")
        return value
    return _decimal(kind, signed(value))


def _number(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"a partition value of the type {type(value).__name__}")
    return value


def default_value(kind: IcebergType, value: Any) -> pa.Scalar | None:
    """The default of a field, from its JSON value; None without one.

    Raises:
        TypeError, ValueError, pa.ArrowException: it is no value of the type.
    """
    if value is None:
        return None
    target = arrow_type(kind)
    if kind.name == "binary":
        return pa.scalar(bytes.fromhex(value), target)
    if kind.name in ("date", "timestamp", "timestamptz") or kind.name.startswith("decimal"):
        return pa.scalar(value).cast(target)
    return pa.scalar(value, target)


def bound_bytes(kind: IcebergType, value: Any) -> bytes:
    """A value as a bound; days and microseconds may also be numbers.

    Raises:
        OverflowError, struct.error: it is no value of the type.
    """
    if kind.name == "boolean":
        return b"\1" if value else b"\0"
    if kind.name in ("float", "double"):
        return struct.pack("<f" if kind.name == "float" else "<d", value)
    if kind.name == "string":
        return str(value).encode()
    if kind.name == "binary":
        return bytes(value)
    if isinstance(value, Decimal):
        number = int(value.scaleb(decimal_of(kind)[1], _EXACT))
        return big_endian(number)
    width = 8 if kind.name in ("long", "timestamp", "timestamptz") else 4
    return _as_number(value).to_bytes(width, "little", signed=True)


def signed(data: bytes) -> int:
    """The number that ``big_endian`` has written, in these or more bytes."""
    return int.from_bytes(data, "big", signed=True)


def big_endian(number: int) -> bytes:
    """A number in the fewest bytes of two's complement."""
    positive = number if number >= 0 else ~number
    return number.to_bytes(positive.bit_length() // 8 + 1, "big", signed=True)


def _as_number(value: Any) -> int:
    if isinstance(value, dt.datetime):
        return (value.replace(tzinfo=None) - _EPOCH) // dt.timedelta(microseconds=1)
    if isinstance(value, dt.date):
        return (value - _EPOCH_DAY).days
    return int(value)
