"""What a new table is partitioned by: columns, or transforms of columns such as ``day(ts)``.

The names are those of Spark's PARTITIONED BY; which types a transform takes, a table format knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from spark_jobs.contract.checks import require
from spark_jobs.contract.sql_text import unquoted

IDENTITY: Final = "identity"
_UNITS: Final = ("year", "month", "day", "hour")
_WITH_NUMBER: Final = ("bucket", "truncate")
_SPELLED: Final = {
    **{each: each for each in (*_UNITS, *_WITH_NUMBER)},
    **{f"{unit}s": unit for unit in _UNITS},
}
_TEXT: Final = re.compile(r"(\w+)\s*\((?:\s*(-?\d{1,18})\s*,)?(.*)\)", re.DOTALL)
_MOST: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """A column (``transform`` is ``identity``), or a transform of one.

    ``number`` is that of ``bucket`` and ``truncate``.
    """

    column: str
    transform: str = IDENTITY
    number: int | None = None

    def __str__(self) -> str:
        if self.transform == IDENTITY:
            return self.column
        number = "" if self.number is None else f"{self.number}, "
        return f"{self.transform}({number}{self.column})"


def partition_keys(texts: Iterable[str], columns: Sequence[str]) -> tuple[PartitionKey, ...]:
    """The keys that ``texts`` describe, with the names of ``columns`` as these are spelled.

    Raises:
        RequestError: REQUEST_INVALID: it is none, of no column, or of a column that has one of its
            kind; names the key.
    """
    spelled = {each.lower(): each for each in columns}
    keys_by_kind: dict[tuple[str, str], PartitionKey] = {}
    for text in texts:
        key = _key(text, spelled)
        # Of a day, the month is known: as in Iceberg, units of time are of one kind.
        kind = "time" if key.transform in _UNITS else key.transform
        earlier = keys_by_kind.setdefault((key.column, kind), key)
        require(
            earlier is key,
            "partition_keys",
            f"{text}: {key.column} is already in {earlier}",
            "Leave one of them out.",
        )
    return tuple(keys_by_kind.values())


def parsed_key(text: str, field: str = "partition_keys") -> PartitionKey:
    """The key that ``text`` describes, whose column nobody has looked for.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``: it is none.
    """
    parts = _TEXT.fullmatch(text.strip())
    if parts is None:
        require(bool(text.strip()), field, "is empty")
        return PartitionKey(unquoted(text.strip()))
    transform = _SPELLED.get(parts[1].lower(), "")
    require(
        bool(transform),
        field,
        f"{text}: {parts[1]} is not a transform",
        "Use year, month, day, hour, bucket or truncate.",
    )
    takes_number = transform in _WITH_NUMBER
    require(
        takes_number == (parts[2] is not None),
        field,
        f"{text}: {transform} takes {'a number and a' if takes_number else 'one'} column",
        f"Write {transform}(16, column)." if takes_number else f"Write {transform}(column).",
    )
    number = int(parts[2]) if takes_number else None
    require(
        number is None or 0 < number <= _MOST,
        field,
        f"{text}: {number} is not from 1 to {_MOST}",
    )
    return PartitionKey(unquoted(parts[3].strip()), transform, number)


def _key(text: str, spelled: dict[str, str]) -> PartitionKey:
    if text.lower() in spelled or _TEXT.fullmatch(text.strip()) is None:
        return PartitionKey(_column(text, text, spelled))
    key = parsed_key(text)
    return replace(key, column=_column(text, key.column, spelled))


def _column(text: str, name: str, spelled: dict[str, str]) -> str:
    where = "" if name == text else f"{text}: "
    require(
        name.lower() in spelled, "partition_keys", f"{where}{name} is not a column of the table"
    )
    return spelled[name.lower()]
