"""The parts of an order in which tables keep their rows: ``bucket(4, id) DESC NULLS LAST``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from spark_jobs.contract.checks import require
from spark_jobs.contract.partition_keys import PartitionKey, parsed_key

_TEXT: Final = re.compile(
    r"(?P<key>.*?)(?:\s+(?P<direction>ASC|DESC))?(?:\s+NULLS\s+(?P<nulls>FIRST|LAST))?",
    re.IGNORECASE | re.DOTALL,
)


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
    found = _TEXT.fullmatch(text.strip())
    require(
        found is not None and bool(found["key"].strip()),
        field,
        f"{text!r} names no column",
        "Write column, column DESC, or bucket(16, column) ASC NULLS LAST.",
    )
    assert found is not None  # noqa: S101 - required above
    descending = (found["direction"] or "").upper() == "DESC"
    nulls = (found["nulls"] or "").upper()
    return SortField(
        parsed_key(found["key"], field), descending, nulls != "LAST" if nulls else not descending
    )
