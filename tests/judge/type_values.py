"""Paimon's types with values at their edges, in the form of ``tests.support.judged_values``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.support.judged_values import Number

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - values have no zones
_LOCAL = " WITH LOCAL TIME ZONE"
# The years 1970 to 2261.
_ORC_RANGE = (0, 9_214_646_399_999_999_999)


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of Paimon's in JSON form, and values of it; the first is an ordinary one.

    ``partitions`` are values that partitions can have, if not all can.
    """

    paimon: Any
    values: Sequence[Any] = ()
    partitions: Sequence[Any] = ()

    @property
    def column(self) -> str:
        """A name for columns of this type."""
        text = self.paimon if isinstance(self.paimon, str) else self.paimon["type"]
        words = "".join(each if each.isalnum() else " " for each in text.lower()).split()
        return "_".join(words).replace("with_local_time_zone", "ltz")

    @property
    def is_nested(self) -> bool:
        """Whether it is an ARRAY, MAP or ROW."""
        return not isinstance(self.paimon, str)

    def values_in(self, file_format: str) -> Sequence[Any]:
        """The values that are read from files of the format."""
        if file_format != "orc" or not str(self.paimon).startswith("TIMESTAMP"):
            return self.values
        first, last = _ORC_RANGE
        return [each for each in self.values if first <= each <= last]


def row_type(*fields: tuple[str, Any]) -> dict[str, Any]:
    """A ROW in JSON form."""
    named = [{"id": i, "name": n, "type": kind} for i, (n, kind) in enumerate(fields, 1000)]
    return {"type": "ROW", "fields": named}


def _whole(name: str, bits: int) -> Kind:
    edge = 2 ** (bits - 1)
    return Kind(name, (7, -edge, edge - 1, 0, -1))


def _real(name: str, kind: pa.DataType, *edges: float) -> Kind:
    special = (-0.0, 0.0, float("nan"), float("inf"), -float("inf"))
    values = pa.array([1.5, *special, *edges], pa.float64()).cast(kind)
    # Others are not spelled alike by all versions of Java.
    partitions = pa.array([1.5, 0.0, -0.001, 9999999.0, 12.3], pa.float64()).cast(kind)
    return Kind(
        name, list(map(Number, values.to_pylist())), list(map(Number, partitions.to_pylist()))
    )


def _decimal(precision: int, scale: int) -> Kind:
    ordinary, zero = Decimal((0, (7,), -scale)), Decimal((0, (0,), -scale))
    most, least = Decimal((0, (9,) * precision, -scale)), Decimal((0, (1,), -scale))
    # Operators would round to 28 digits.
    values: tuple[Decimal, ...] = (
        ordinary,
        most.copy_negate(),
        most,
        zero,
        least.copy_negate(),
        least,
    )
    if precision > 2:
        # Java stores it in one byte, pypaimon in two.
        values += (Decimal((1, (1, 2, 8), -scale)),)
    return Kind(f"DECIMAL({precision}, {scale})", values)


_MOMENTS = (
    "2026-03-29T02:30:00.120345",  # never on clocks in Berlin
    "0001-01-01T00:00:00.000001",
    "9999-12-31T23:59:59.999999",
    "1969-12-31T23:59:59.999999",
    "1582-10-10T12:00:00.000000",  # in neither calendar's past
    "1883-11-18T12:03:57.900001",  # when New York's clocks were set
    "1970-01-01T00:00:00.000000",
    "2261-12-31T23:59:59.654321",
)


def _timestamps(*precisions: int, zone: str = "") -> tuple[Kind, ...]:
    return tuple(
        Kind(f"TIMESTAMP({each}){zone}", [_nanoseconds(text, each) for text in _MOMENTS])
        for each in precisions
    )


def _nanoseconds(text: str, precision: int) -> int:
    unit = 10 ** (9 - precision)
    moment = (datetime.fromisoformat(text) - _EPOCH) // timedelta(microseconds=1) * 1000
    return moment // unit * unit


_DAYS = (
    date(2026, 2, 28),
    date(1, 1, 1),
    date(9999, 12, 31),
    date(1582, 10, 10),
    date(1969, 12, 31),
    date(1970, 1, 1),
)
_WORDS = ("abcde", "", "NULL", 'a"\\', "it's", "東ü👩é", "tab\t\n", "null", " x")
_LONG = "common prefix " * 100  # longer than what statistics hold
_TEXTS = (*_WORDS, _LONG + "東", _LONG, "\x00\x7f")
_NAN = Number("nan")

# By lines of the matrix: the types that stand for the line.
KINDS: dict[str, tuple[Kind, ...]] = {
    "BOOLEAN": (Kind("BOOLEAN", (True, False)),),
    "TINYINT": (_whole("TINYINT", 8),),
    "SMALLINT": (_whole("SMALLINT", 16),),
    "INT": (_whole("INT", 32),),
    "BIGINT": (_whole("BIGINT", 64),),
    "FLOAT": (_real("FLOAT", pa.float32(), 0.1, 1.4e-45, -3.4028234663852886e38),),
    "DOUBLE": (_real("DOUBLE", pa.float64(), 0.1, 5e-324, -1.7976931348623157e308),),
    "DECIMAL of 1 to 9 digits": (_decimal(1, 0), _decimal(9, 2)),
    "DECIMAL of 10 to 18 digits": (_decimal(10, 0), _decimal(18, 9)),
    "DECIMAL of 19 to 38 digits": (_decimal(19, 0), _decimal(38, 18), _decimal(38, 38)),
    "CHAR": (
        Kind("CHAR(1)", ("a", " ", "東")),
        Kind("CHAR(5)", ("abcde", "     ", "a    ", "東ü  👩")),
    ),
    "VARCHAR": (Kind("VARCHAR(6)", _WORDS),),
    "STRING": (Kind("STRING", _TEXTS, (*_WORDS, "50%/a=b", "\x01")),),
    "BINARY": (Kind("BINARY(3)", (b"abc", b"\0\xff\x80")),),
    "VARBINARY": (Kind("VARBINARY(3)", (b"abc", b"", b"\0", b"\xff\xfe\xfd")),),
    "BYTES": (Kind("BYTES", (b"abc", b"", bytes(range(256)), b"\xff" * 2000)),),
    "DATE": (Kind("DATE", _DAYS),),
    "TIME": (Kind("TIME(0)"), Kind("TIME(3)")),
    "TIMESTAMP(0) to (3)": _timestamps(0, 1, 3),
    "TIMESTAMP(4) to (6)": _timestamps(4, 6),
    "TIMESTAMP(7) to (9)": _timestamps(7, 9),
    "TIMESTAMP_LTZ(0) to (3)": _timestamps(0, 3, zone=_LOCAL),
    "TIMESTAMP_LTZ(4) to (6)": _timestamps(4, 6, zone=_LOCAL),
    "TIMESTAMP_LTZ(7) to (9)": _timestamps(7, 9, zone=_LOCAL),
    "ARRAY": (
        Kind(
            {"type": "ARRAY", "element": "DOUBLE"},
            ([Number(1.5)], [], [None], [Number(0.1), None, _NAN], [_NAN]),
        ),
    ),
    "MAP": (
        Kind(
            {"type": "MAP", "key": "STRING", "value": "DECIMAL(20, 2)"},
            ({"a": Decimal("1.50")}, {}, {"": None}, {"b": Decimal("-0.01"), "a": None}),
        ),
    ),
    "ROW": (
        Kind(
            row_type(("x", "INT"), ("y", "STRING")),
            ({"x": 1, "y": "a"}, {"x": None, "y": None}, {"x": None, "y": ""}, {"x": -1, "y": "é"}),
        ),
    ),
    "MULTISET": (Kind({"type": "MULTISET", "element": "INT"}),),
    "VARIANT": (Kind("VARIANT"),),
    "BLOB": (Kind("BLOB"),),
    "VECTOR": (Kind({"type": "VECTOR", "element": "FLOAT", "length": 3}),),
}
