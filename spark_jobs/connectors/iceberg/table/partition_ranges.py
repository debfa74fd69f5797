"""What a file's partition says about its source columns. Driver only.

Follows the Iceberg specification, "Partition Transforms". Older writers rounded times before 1970
towards zero, so that a file may hold the unit before the one that it names (as in Iceberg's
``ProjectionUtil.fixInclusiveTimeProjection``).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from spark_jobs.connectors.iceberg.format.schema import IcebergField, IcebergType, decimal_of
from spark_jobs.connectors.iceberg.format.transforms import FLOATING, MICROSECONDS
from spark_jobs.connectors.iceberg.format.values import date, partition_value, timestamp
from spark_jobs.formats.iceberg.transforms import named
from spark_jobs.spi.tables import ColumnRange

_UNITS: Final = ("year", "month", "day", "hour")
_EPOCH: Final = dt.date(1970, 1, 1)
_TIMES: Final = ("timestamp", "timestamptz")
_GREATEST: Final = {"int": 2**31 - 1, "long": 2**63 - 1}


@dataclass(frozen=True, slots=True)
class PartitionPart:
    """A field of a partition spec; ``source`` is None if statements cannot use such a column."""

    id: int
    name: str
    transform: str
    source: IcebergField | None


def partition_ranges(
    spec: Sequence[PartitionPart], partition: Mapping[int, Any], row_count: int
) -> Iterator[tuple[str, ColumnRange]]:
    """What is known of the columns of a file, by name, from its partition (Avro's values by id).

    Raises:
        TypeError, ValueError: a value is not valid for its type.
    """
    for part in spec:
        if part.source is None or part.transform == "void" or part.id not in partition:
            continue
        column_range = _range(part.source.type, part.transform, partition[part.id], row_count)
        if column_range is not None:
            yield part.source.name, column_range


def _range(kind: IcebergType, transform: str, value: Any, row_count: int) -> ColumnRange | None:
    name, number = named(transform)
    if number is None and name not in ("identity", *_UNITS):
        return None
    if value is None:
        return ColumnRange(None, None, row_count)
    if transform == "identity":
        exact = partition_value(kind, value)
        # NaN lies between no bounds, and both zeros are equal.
        return ColumnRange(None, None, 0) if kind.name in FLOATING else ColumnRange(exact, exact, 0)
    bounds = (None, None)
    if name == "truncate" and number is not None:
        bounds = _truncated(kind, partition_value(kind, value), number)
    elif transform in _UNITS:
        if type(value) is not int:
            raise TypeError(f"{transform}: {str(value)[:100]!r} is not a number")
        bounds = _unit(kind, transform, value)
    return ColumnRange(*bounds, 0)


def _truncated(kind: IcebergType, value: Any, width: int) -> tuple[Any, Any]:
    if value is None:
        return None, None
    if kind.name in _GREATEST:
        last = value + width - 1
        # Below the least number, truncation wraps around to such a value; a column that is a BIGINT
        # now may have been an INT when the file was written.
        is_ambiguous = any(value <= each < last for each in _GREATEST.values())
        return (None, None) if is_ambiguous else (value, last)
    if kind.name.startswith("decimal"):
        return value, value + Decimal(width - 1).scaleb(-decimal_of(kind)[1])
    if kind.name != "string":
        return None, None
    if len(value) < width:
        return value, value
    return value, text_after(value)


def text_after(prefix: str) -> str | None:
    """A text that is greater than each that begins with ``prefix``."""
    last = ord(prefix[-1]) + 1
    return prefix[:-1] + chr(last) if last < 0xD800 else None


def _unit(kind: IcebergType, unit: str, value: int) -> tuple[Any, Any]:
    first = value - 1 if value <= 0 else value
    if kind.name == "date":
        low, end = _start_day(unit, first), _start_day(unit, value + 1)
        return low, None if end is None else end - dt.timedelta(days=1)
    if kind.name not in _TIMES:
        return None, None
    zone = dt.UTC if kind.name == "timestamptz" else None
    start, after = _start(unit, first), _start(unit, value + 1)
    return (
        None if start is None else timestamp(start, zone),
        None if after is None else timestamp(after - 1, zone),
    )


def _start(unit: str, value: int) -> int | None:
    """The first microsecond of a unit of time after 1970."""
    if unit in MICROSECONDS:
        return value * MICROSECONDS[unit]
    day = _start_day(unit, value)
    return None if day is None else (day - _EPOCH).days * MICROSECONDS["day"]


def _start_day(unit: str, value: int) -> dt.date | None:
    if unit == "day":
        return date(value)
    months = value * 12 if unit == "year" else value
    year, month = divmod(1970 * 12 + months, 12)
    if unit == "hour" or not dt.MINYEAR <= year <= dt.MAXYEAR:
        return None
    return dt.date(year, month + 1, 1)
