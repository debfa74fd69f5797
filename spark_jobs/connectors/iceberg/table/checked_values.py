"""Checks of values in manifests, which anybody may have written; each raises ValueError."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_MAXIMUM_LONG: Final = 2**63 - 1


def require_number(what: str, value: Any) -> None:
    """Check a number that is not negative."""
    if type(value) is not int or not 0 <= value <= _MAXIMUM_LONG:
        raise ValueError(f"{what}: {str(value)[:100]!r} is not a number that it can have")


def require_number_or_none(what: str, value: Any) -> None:
    """Check a number that may be missing."""
    # Readers of Iceberg take a negative count for none.
    if value is not None and type(value) is not int:
        raise ValueError(f"{what}: {str(value)[:100]!r} is not a number")


def require_row_id(record: Mapping[str, Any]) -> None:
    """Check the id of a first row, if there is one."""
    first_row_id = record.get("first_row_id")
    if first_row_id is not None:
        require_number("first_row_id", first_row_id)


def require_text(what: str, value: Any) -> None:
    """Check a text that is not empty."""
    if type(value) is not str or not value:
        raise ValueError(f"{what}: {str(value)[:100]!r} is not text")
