"""What readers of landed files make: rows of the wanted columns, and records that cannot be rows.

Imported by executors: nothing here needs Spark or a table library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

import pyarrow as pa

# What becomes of a record that cannot be read: it is told of, it keeps what can be read of it with
# NULL for the rest (Spark's PERMISSIVE), or it is left out (Spark's DROPMALFORMED).
Leniency = Literal["tell", "null", "drop"]

_SHOWN: int = 200


class Column(NamedTuple):
    """A wanted column: its type in Arrow, and as Spark's DDL writes it (``DECIMAL(6,2)``)."""

    name: str
    kind: pa.DataType
    type_name: str


class Problem(NamedTuple):
    """Why a record is bad; with a column where one value is.

    ``remedy`` names the option that would accept the record.
    """

    reason: str
    remedy: str
    column: str | None = None
    value: str | None = None
    expected: str | None = None


NOT_UTF8: Final = Problem(
    "has bytes that are not UTF-8",
    "options={'encoding': 'ISO-8859-1'} or another name says how the file is written.",
)


class RecordLocation(NamedTuple):
    """Where a record stands in its file: the line it begins on and its number, both from 1.

    ``line`` is None in files that have no lines. ``record`` does not count the header, and is None
    where the file is read in parts.
    """

    line: int | None
    record: int | None


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that is no row: where it is, its bytes (UTF-8 but for what is damaged), and why."""

    location: RecordLocation
    raw: bytes
    problem: Problem

    @property
    def text(self) -> str:
        r"""The record's text; bytes that are no UTF-8 are shown as ``\xe4``."""
        return text_of(self.raw)


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Some records of a file, read: ``rows`` have the wanted columns in their order.

    ``records`` counts all of them, the bad ones too. ``lost_values`` became NULL and
    ``lost_records`` were left out or kept as NULLs because the source's options ask for it.
    ``seen`` are names of columns that occur in the file, as they are written there.
    """

    rows: pa.RecordBatch
    records: int
    bad: Sequence[BadRecord] = ()
    lost_values: int = 0
    lost_records: int = 0
    seen: frozenset[str] = field(default_factory=frozenset)


class NotAValue(ValueError):  # noqa: N818 - it says what the text is
    """A text that is no value of a type; the message says why where that is not plain to see."""


def text_of(raw: bytes) -> str:
    r"""Bytes as text; what is no UTF-8 is shown as ``\xe4``."""
    return raw.decode("utf-8", errors="backslashreplace")


def shown(text: str) -> str:
    """``text`` as an error shows it: quoted, and not longer than a line or two."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
