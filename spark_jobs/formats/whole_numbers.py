"""Whole numbers among a table's options or properties, which others have written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from spark_jobs.errors import NotSupportedError

# The largest value of Java's long, which is how the formats' own libraries read them.
LARGEST: Final = 2**63 - 1
_DIGITS: Final = 19
_SHOWN: Final = 100


def whole_number(options: Mapping[str, str], name: str, default: int, least: int = 1) -> int:
    """The number that the option ``name`` has, at least ``least``; ``default`` if it is not set.

    Raises:
        NotSupportedError: its value is not such a number.
    """
    text = options.get(name)
    if text is None:
        return default
    digits = text.strip()
    if digits.isascii() and digits.isdecimal() and len(digits) <= _DIGITS:
        number = int(digits)
        if least <= number <= LARGEST:
            return number
    raise NotSupportedError(
        f"Option {name} = {text[:_SHOWN]!r} is not a whole number from {least} on.",
        "Correct the table's option.",
    )
