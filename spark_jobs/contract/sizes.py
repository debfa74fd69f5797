"""Sizes in bytes (``128 mb``), in parameters and Paimon's options."""

from __future__ import annotations

import re
from typing import Final

_FORM: Final = re.compile(r"([0-9]{1,18})\s*([a-zA-Z]*)")
# Bytes per unit, by all names of the unit (Paimon's MemoryUnit).
_UNITS: Final = {
    **dict.fromkeys(("", "b", "byte", "bytes"), 1),
    **dict.fromkeys(("k", "kb", "kib", "kibibyte", "kibibytes"), 2**10),
    **dict.fromkeys(("m", "mb", "mib", "mebibyte", "mebibytes"), 2**20),
    **dict.fromkeys(("g", "gb", "gib", "gibibyte", "gibibytes"), 2**30),
    **dict.fromkeys(("t", "tb", "tib", "tebibyte", "tebibytes"), 2**40),
}


def parse_size(text: str) -> int:
    """The bytes in a text of a number and a unit, from bytes to terabytes.

    Raises:
        ValueError: the text is not a size, or has no unit.
    """
    if text.strip().isdecimal():
        raise ValueError(f"{text!r} has no unit: write {text.strip()} mb, gb, kb or b")
    return parse_size_option(text)


def parse_size_option(text: str) -> int:
    """The bytes in a table option; without a unit in bytes, as in Paimon.

    Raises:
        ValueError: the text is not a size.
    """
    match = _FORM.fullmatch(text.strip())
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise ValueError(f"{text!r} is not a size such as 128 mb or 1 gb")
    return int(match[1]) * unit
