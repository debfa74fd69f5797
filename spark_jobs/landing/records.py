"""What readers of landed files produce: rows of the wanted columns, and bad records.

Imported by executors: nothing here needs Spark or a table library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

import pyarrow as pa

# What happens to a record that cannot be read. "tell": it is reported; "null": values that cannot
# be read become NULL (Spark's PERMISSIVE); "drop": it is left out (Spark's DROPMALFORMED).
Leniency = Literal["tell", "null", "drop"]

_SHOWN: int = 200


class Column(NamedTuple):
    """A wanted column, with its Arrow type and its type in Spark's DDL (``DECIMAL(6,2)``)."""

    name: str
    kind: pa.DataType
    type_name: str


class Problem(NamedTuple):
    """Why a record is bad; ``column`` is set if it is because of one value.

    ``remedy`` says what to correct, or which option would accept the record or set it aside.
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
    """Where a record is in its file: the line it begins on and its number, both from 1.

    ``line`` is None in files without lines. ``record`` does not count the header; it is None in the
    later parts of a file.
    """

    line: int | None
    record: int | None


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that is not a row: its location, its bytes (UTF-8 unless damaged), and why."""

    location: RecordLocation
    raw: bytes
    problem: Problem

    @property
    def text(self) -> str:
        r"""The record's text; bytes that are not UTF-8 are shown as ``\xe4``."""
        return text_of(self.raw)


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Some records of a file; ``rows`` have the wanted columns in order.

    ``records`` counts all records, bad ones included. ``lost_values`` counts values that became
    NULL, and ``lost_records`` records that were left out or filled with NULLs, as the source's
    options ask. ``seen`` are names of columns that occur in the file, as spelled there.
    """

    rows: pa.RecordBatch
    records: int
    bad: Sequence[BadRecord] = ()
    lost_values: int = 0
    lost_records: int = 0
    seen: frozenset[str] = field(default_factory=frozenset)


class NotAValue(ValueError):  # noqa: N818 - it says what the text is
    """A text is not a value of a type; the message says why unless that is obvious."""


def text_of(raw: bytes) -> str:
    r"""Bytes as text; those that are not UTF-8 are shown as ``\xe4``."""
    return raw.decode("utf-8", errors="backslashreplace")


def shown(text: str) -> str:
    """``text`` as shown in an error: quoted, and shortened to a line or two."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")
