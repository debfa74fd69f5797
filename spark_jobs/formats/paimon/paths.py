"""The directories of a Paimon table's data files, spelled as by Paimon's writers.

Follows Paimon's ``FileStorePathFactory``, ``PartitionPathUtils`` and
``InternalRowPartitionComputer``.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

from spark_jobs.errors import NotSupportedError

# The table's option that names the parent directory of the partitions.
DIRECTORY: Final = "data-file.path-directory"
_ESCAPED: Final = frozenset("\"#%'*/:=?\\{}[]^\x7f")
# Blank in Python and pypaimon, but not in Java.
_BLANK_FOR_SOME: Final = frozenset("\x85\xa0\u2007\u202f")
_EPOCH: Final = date(1970, 1, 1)
# Outside this range Java writes exponents, whose digits changed in Java 19.
_SPELLED_ALIKE: Final = (1e-3, 1e7)
# So many tell every FLOAT from its neighbours.
_SINGLE_DIGITS: Final = 9


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """A partition column.

    ``precision`` is that of a timestamp, otherwise None. ``single`` is True for a FLOAT and False
    for a DOUBLE.
    """

    name: str
    precision: int | None = None
    single: bool = False


@dataclass(frozen=True, slots=True)
class PartitionLayout:
    """How partition values become directory names.

    ``default_name`` replaces NULL and blank values (option ``partition.default-name``).
    ``legacy_names`` is option ``partition.legacy-name``, true by default: a date is then written as
    the number of days since 1970-01-01, and a timestamp in ISO form.
    """

    keys: tuple[PartitionKey, ...]
    default_name: str
    legacy_names: bool

    @classmethod
    def of(cls, keys: Sequence[PartitionKey], options: Mapping[str, str]) -> PartitionLayout:
        """The layout that the table's options give to its partition columns."""
        legacy = options.get("partition.legacy-name", "true").lower() == "true"
        default_name = options.get("partition.default-name", "__DEFAULT_PARTITION__")
        return cls(tuple(keys), default_name, legacy)

    def directory(self, values: Sequence[Any]) -> str:
        """The path below the table, such as ``a=1/b=x``; empty for an unpartitioned table.

        Raises:
            NotSupportedError: Java versions spell a FLOAT or DOUBLE differently, or a text is blank
                only to some engines.
        """
        parts = zip(self.keys, values, strict=True)
        return "/".join(f"{_escape(key.name)}={_escape(self._text(key, v))}" for key, v in parts)

    def _text(self, key: PartitionKey, value: Any) -> str:
        text = "" if value is None else self._value_text(key, value)
        if text and not text.isspace():
            return text
        if not _BLANK_FOR_SOME.isdisjoint(text):
            raise NotSupportedError(
                f"{key.name} = {text!a} cannot be a partition: engines differ in whether it is "
                "blank, and so in its directory.",
                "Store NULL or another text for such values.",
            )
        return self.default_name

    def _value_text(self, key: PartitionKey, value: Any) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, Decimal):
            return f"{value:f}"
        if isinstance(value, float):
            return _float_text(key, value)
        if isinstance(value, datetime):
            precision = 6 if key.precision is None else key.precision
            return _legacy_timestamp(value) if self.legacy_names else _timestamp(value, precision)
        if isinstance(value, date):
            return str((value - _EPOCH).days) if self.legacy_names else value.isoformat()
        return str(value)


def data_root(table: str, options: Mapping[str, str]) -> str:
    """The parent directory of the partitions (option ``DIRECTORY``)."""
    directory = options.get(DIRECTORY, "").strip("/")
    return f"{table}/{directory}" if directory else table


def bucket_directory(root: str, partition: str, bucket: int) -> str:
    """The directory for a bucket's data files, from that of its partition below ``root``."""
    return "/".join(part for part in (root, partition, f"bucket-{bucket}") if part)


def _escape(component: str) -> str:
    return "".join(f"%{ord(c):02X}" if c in _ESCAPED or ord(c) < 32 else c for c in component)


def _float_text(key: PartitionKey, value: float) -> str:
    """As Java's ``Double.toString``: the fewest digits that tell a value from its neighbours."""
    smallest, end = _SPELLED_ALIKE
    if not smallest <= abs(value) < end and (value != 0 or math.copysign(1, value) < 0):
        raise NotSupportedError(
            f"{key.name} = {value} cannot be a partition: Java versions spell it differently.",
            f"Partition by 0 or by numbers from {smallest:g} to below {end:g}, or by a DECIMAL.",
        )
    return _positional(_shortest_single(value)) if key.single else _positional(Decimal(repr(value)))


def _positional(number: Decimal) -> str:
    """Without an exponent, and with at least one digit behind the point."""
    whole, _, fraction = f"{number:f}".partition(".")
    return f"{whole}.{fraction.rstrip('0') or '0'}"


def _shortest_single(value: float) -> Decimal:
    """The number of the fewest digits that is stored as this FLOAT; of several, the closest."""
    stored = struct.pack("<f", value)
    (single,) = struct.unpack("<f", stored)
    exact = Decimal(single)
    for digits in range(1, _SINGLE_DIGITS):
        rounded = Decimal(f"{single:.{digits}g}")
        last = Decimal(1).scaleb(rounded.adjusted() - digits + 1)
        near = (rounded, rounded - last, rounded + last)
        candidates = [each for each in near if struct.pack("<f", float(each)) == stored]
        if candidates:
            return min(candidates, key=lambda each: abs(each - exact))
    return Decimal(f"{single:.{_SINGLE_DIGITS}g}")


def _legacy_timestamp(value: datetime) -> str:
    """As Java's ``LocalDateTime.toString``: seconds and fractions only if they are not zero."""
    if value.microsecond:
        text = value.isoformat(timespec="microseconds")
        return text[:-3] if value.microsecond % 1000 == 0 else text
    return value.isoformat(timespec="seconds" if value.second else "minutes")


def _timestamp(value: datetime, precision: int) -> str:
    fraction = f"{value.microsecond:06d}000"
    while len(fraction) > precision and fraction.endswith("0"):
        fraction = fraction[:-1]
    text = value.replace(microsecond=0, tzinfo=None).isoformat(" ")
    return f"{text}.{fraction}" if fraction else text
