"""The columns that are compared: each type with the values at its edges, as SQL and in Arrow."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from pyspark import __version__ as spark_version

HAS_COLLATIONS: Final = int(spark_version.split(".")[0]) >= 4


@dataclass(frozen=True)
class Column:
    """A column of a table: its Spark type, its type in files, and values that it has.

    ``of_table``: the type of the table's column, where files may have another one.
    """

    name: str
    type: str
    arrow: pa.DataType
    values: tuple[Any, ...]
    of_table: pa.DataType | None = None

    @property
    def literals(self) -> list[str]:
        """The values as SQL."""
        return [_literal(value, self.type) for value in self.values]


def _literal(value: Any, kind: str) -> str:
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, str):
        text = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{text}'"
    text = value.isoformat(" ") if isinstance(value, dt.datetime) else str(value)
    return f"CAST('{text}' AS {kind})"


def _moment(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC)  # type: ignore[misc,arg-type]


DOUBLES: Final = (math.nan, -0.0, 0.0, -math.inf, math.inf, 5.0, 6.5, -1.0, 5e-324)
_TEXTS: Final = ("b", "B", "a", "A", "", "é", "ba", "Z", "a" * 20, "\U0001f600", "\uffff")
_DATES: Final = tuple(
    dt.date.fromisoformat(text)
    for text in ("1970-01-01", "1969-12-31", "0001-01-01", "9999-12-31", "2024-02-29")
)
_MOMENTS: Final = (
    _moment(1970, 1, 1),
    _moment(1969, 12, 31, 23, 59, 59, 999_000),
    _moment(2024, 3, 31, 1, 0, 0, 1_000),
    _moment(2024, 3, 31, 1),
    _moment(1600, 1, 1),
)
_FINE: Final = (
    *_MOMENTS,
    _moment(1970, 1, 1, 0, 0, 0, 1),
    _moment(1969, 12, 31, 23, 59, 59, 999_999),
)
_MICROS: Final = pa.timestamp("us", "UTC")
COLUMNS: Final = (
    Column("i", "INT", pa.int32(), (0, -(2**31), 2**31 - 1, -1, 1, 7)),
    Column("n", "BIGINT", pa.int64(), (0, -(2**63), 2**63 - 1, -(2**31) - 1, 2**31, 7)),
    Column("f", "DOUBLE", pa.float64(), DOUBLES),
    Column("g", "FLOAT", pa.float32(), DOUBLES[:-1]),
    Column(
        "m",
        "DECIMAL(9, 2)",
        pa.decimal128(9, 2),
        tuple(map(Decimal, ("0.00", "-9999999.99", "9999999.99", "-0.01", "0.10"))),
    ),
    Column(
        "h",
        "DECIMAL(38, 0)",
        pa.decimal128(38, 0),
        (Decimal(0), Decimal(-(10**38) + 1), Decimal(10**38 - 1), Decimal(1), Decimal(2**64)),
    ),
    Column("s", "STRING", pa.string(), _TEXTS),
    Column("y", "BINARY", pa.binary(), (b"", b"\0", b"\x7f", b"\x80", b"\xff\xff", b"a" * 20)),
    Column("b", "BOOLEAN", pa.bool_(), (True, False)),
    Column("d", "DATE", pa.date32(), _DATES),
    Column("ts", "TIMESTAMP", _MICROS, _FINE),
    Column("tm", "TIMESTAMP", pa.timestamp("ms", "UTC"), _MOMENTS, _MICROS),
    Column(
        "tn",
        "TIMESTAMP_NTZ",
        pa.timestamp("us"),
        tuple(each.replace(tzinfo=None) for each in _FINE),
    ),
    Column("q.d", "INT", pa.int32(), (0, 1, 2)),
    Column("qf.d", "DOUBLE", pa.float64(), DOUBLES),
)
# Its fields are compared, not the struct.
STRUCT: Final = Column(
    "st",
    "STRUCT<x: DOUBLE, k: INT>",
    pa.struct([("x", pa.float64()), ("k", pa.int32())]),
    tuple({"x": value, "k": number} for number, value in enumerate(DOUBLES)),
)
ALL: Final = (*COLUMNS, STRUCT)
