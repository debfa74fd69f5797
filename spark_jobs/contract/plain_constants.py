"""Plain constants of partition specs: values that need no Spark to be known.

A constant is plain if its form and the column's type leave one reading, in every Spark session:
NULL, texts without escapes, whole numbers, booleans and dates. All others, and all that a column
may not hold, are left to Spark. So Airflow's side knows before a job starts whether it needs a
session, and the job agrees.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from spark_jobs.contract.inserts import ClearingStatement, PartitionSpec, TruncateTableSpec
from spark_jobs.contract.sql_text import unquoted

_TEXT: Final = re.compile(r"'([^'\\]*)'")
_NUMBER: Final = re.compile(r"-?[0-9]{1,18}")
_SIGNED: Final = re.compile(r"[+-]?[0-9]{1,18}")
_BOOLEAN: Final = re.compile(r"true|false", re.ASCII | re.IGNORECASE)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DAY: Final = re.compile(r"[+-]?[0-9]{4,7}-[0-9]{1,2}-[0-9]{1,2}")
_MONTH_OR_YEAR: Final = re.compile(r"[+-]?[0-9]{4,7}(?:-[0-9]{1,2})?")
_TYPED_DATE: Final = re.compile(rf"date *'({_DATE.pattern})'", re.ASCII | re.IGNORECASE)
_VARCHAR: Final = re.compile(r"varchar\(([0-9]{1,10})\)")

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_BITS: Final = {"tinyint": 8, "smallint": 16, "int": 32, "integer": 32, "bigint": 64}


@dataclass(frozen=True, slots=True)
class Constant:
    """A spec's value for a column; ``text`` is that value as Spark casts it to STRING."""

    value: Any
    text: str | None

    def as_sql(self, declared: str) -> str:
        """The value as a Spark SQL expression of type ``declared``."""
        if self.text is None:
            return f"CAST(NULL AS {declared})"
        if isinstance(self.value, bytes | bytearray):
            return f"X'{self.value.hex()}'"
        if isinstance(self.value, dt.datetime) and self.value.tzinfo is not None:
            # As text, an hour may occur twice.
            return f"timestamp_micros({(self.value - _EPOCH) // dt.timedelta(microseconds=1)})"
        escaped = self.text.replace("\\", "\\\\").replace("'", "\\'")
        return f"CAST('{escaped}' AS {declared})"


def plain_constant(text: str, declared: str) -> Constant | None:
    """The value of the Spark SQL expression ``text`` in a column; None if only Spark can tell.

    ``declared`` is the column's type as Spark or Paimon write it.
    """
    if text.upper() == "NULL":
        return Constant(None, None)
    kind = declared.lower().removesuffix(" not null")
    if quoted := _TEXT.fullmatch(text):
        return _of_text(quoted[1], kind)
    if _NUMBER.fullmatch(text):
        return _text(str(int(text)), kind) or _whole_number(text, kind)
    if _BOOLEAN.fullmatch(text):
        return _text(text.lower(), kind) or _boolean(text.lower(), kind)
    if typed := _TYPED_DATE.fullmatch(text):
        day = _date(typed[1], "date")
        return day and (_text(typed[1], kind) or _date(typed[1], kind))
    return None


def is_unclear_day(text: str, declared: str) -> bool:
    """Whether a quoted text for a column of days or times is not a day, but Spark casts it to one.

    Of ``'2026-01'`` Spark makes the first day, and of ``'2026-01-31 or so'``, for a DATE, the 31st.
    """
    quoted, kind = _TEXT.fullmatch(text), declared.lower().removesuffix(" not null")
    if quoted is None:
        return False
    if kind == "date":
        return not _DAY.fullmatch(quoted[1].strip())
    return kind.startswith("timestamp") and _MONTH_OR_YEAR.fullmatch(quoted[1].strip()) is not None


def has_plain_constants(
    statement: ClearingStatement, column_types: Callable[[], Mapping[str, str]]
) -> bool:
    """Whether all constants of ``statement`` are plain.

    ``column_types`` returns the declared types of the table's columns; it is called only if the
    statement has constants.
    """
    if isinstance(statement, TruncateTableSpec):
        specs: tuple[PartitionSpec, ...] = (statement.partition,)
    else:
        specs = statement.partitions
    if not any(specs):
        return True
    types = {name.lower(): declared for name, declared in column_types().items()}
    return all(_is_plain(spec, types) for spec in specs)


def _is_plain(spec: PartitionSpec, types: Mapping[str, str]) -> bool:
    declared = {name: types.get(unquoted(name).lower(), "") for name in spec}
    return all(plain_constant(text, declared[name]) is not None for name, text in spec.items())


def _of_text(text: str, kind: str) -> Constant | None:
    """What Spark casts a string to."""
    if _SIGNED.fullmatch(text) and (number := _whole_number(text, kind)):
        return number
    return _text(text, kind) or _boolean(text, kind) or _date(text, kind)


def _text(text: str, kind: str) -> Constant | None:
    # Characters that are not printable might not reach Spark's parser as they are.
    if not text.isprintable():
        return None
    limit = _VARCHAR.fullmatch(kind)
    fits = kind == "string" or (limit is not None and len(text) <= int(limit[1]))
    return Constant(text, text) if fits else None


def _whole_number(text: str, kind: str) -> Constant | None:
    bits = _BITS.get(kind)
    if bits is None or not -(2 ** (bits - 1)) <= int(text) < 2 ** (bits - 1):
        return None
    return Constant(int(text), str(int(text)))


def _boolean(text: str, kind: str) -> Constant | None:
    if kind != "boolean" or text not in ("true", "false"):
        return None
    return Constant(text == "true", text)


def _date(text: str, kind: str) -> Constant | None:
    if kind != "date" or not _DATE.fullmatch(text):
        return None
    try:
        return Constant(dt.date.fromisoformat(text), text)
    except ValueError:
        return None
