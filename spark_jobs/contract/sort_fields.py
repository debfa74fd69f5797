"""The parts of an order in which tables keep their rows: ``bucket(4, id) DESC NULLS LAST``."""

from __future__ import annotations

from dataclasses import dataclass

from spark_jobs.contract.checks import require
from spark_jobs.contract.partition_keys import PartitionKey, parsed_key


@dataclass(frozen=True, slots=True)
class SortField:
    """A column, or a transform of one, and how its values are ordered."""

    key: PartitionKey
    descending: bool
    nulls_first: bool

    def __str__(self) -> str:
        direction = "DESC" if self.descending else "ASC"
        return f"{self.key} {direction} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


def sort_field(text: str, field: str) -> SortField:
    """The part of an order that ``text`` describes.

    As in Spark and Iceberg, NULLs are first if nothing is said, and last with DESC.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``.
    """
    rest, nulls = _ending(text.strip(), ("NULLS FIRST", "NULLS LAST"))
    rest, direction = _ending(rest, ("ASC", "DESC"))
    require(
        bool(rest),
        field,
        f"{text!r} names no column",
        "Write column, column DESC, or bucket(16, column) ASC NULLS LAST.",
    )
    descending = direction == "DESC"
    nulls_first = nulls == "NULLS FIRST" if nulls else not descending
    return SortField(parsed_key(rest, field), descending, nulls_first)


def _ending(text: str, endings: tuple[str, ...]) -> tuple[str, str]:
    """The text without its last words, and these in upper case, if they are one of ``endings``."""
    words = text.rsplit(None, len(endings[0].split()))
    last = " ".join(words[1:]).upper()
    return (words[0], last) if last in endings else (text, "")
