"""Checks that the contract's objects run on their own structure.

For a name that is not in a list, they say what was meant.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import Final

from spark_jobs.errors import ErrorCode, RequestError

# Not compared: it is no name, and comparing takes time by the square.
_LONGEST: Final = 200
_SHOWN: Final = 30
# In bytes: with what catalogs add, a name must fit into the 255 bytes of a folder name.
LONGEST_NAME: Final = 240
_NO_TEXT: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_QUOTED: Final = re.compile(r"`(?:[^`]|``)*`")
_PART: Final = re.compile(r"(?:`(?:[^`]|``)+`|[^.`])+")


def did_you_mean(name: object, known: Iterable[object], cutoff: float = 0.6) -> str:
    """``Did you mean NAME?`` for the nearest of ``known``; empty if none is near."""
    if not isinstance(name, str) or len(name) > _LONGEST:
        return ""
    by_case = {str(each).lower(): str(each) for each in known}
    close = get_close_matches(name.lower(), by_case, 1, cutoff)
    return f"Did you mean {by_case[close[0]]}?" if close else ""


def not_among(field: str, value: object, known: Iterable[object]) -> RequestError:
    """The error for a ``value`` of ``field`` that is none of the ``known``."""
    names = [str(each) for each in known]
    problem = f"{value!r} is not one of: {', '.join(names)}"
    return RequestError(ErrorCode.REQUEST_INVALID, problem, did_you_mean(value, names), (field,))


def unknown_field(field: str, name: str, known: Iterable[object]) -> RequestError:
    """The error for a field that is none of the ``known``, which it lists."""
    names = [str(each) for each in known]
    guess = did_you_mean(name, names)
    remedy = f"{guess} Known: {', '.join(names)}.".strip()
    return RequestError(ErrorCode.REQUEST_INVALID, "unknown field", remedy, (field,))


def require_among(value: object, known: Iterable[object], field: str) -> None:
    """Refuse a ``value`` of ``field`` that is none of the ``known``.

    Raises:
        RequestError: REQUEST_INVALID, with the name that is nearest.
    """
    names = tuple(known)
    if value not in names:
        raise not_among(field, value, names)


def no_column(
    name: str, part: str, sides: Sequence[tuple[str, Collection[str]]], *, may_be_text: bool = False
) -> tuple[str, str]:
    """Problem and remedy of a ``name`` that is no column of any of ``sides``: labels and columns.

    ``part`` of the name is compared with them. ``may_be_text``: it stands where a value does, so
    the quotes of a text may be missing.
    """
    remedy = did_you_mean(part, [each for _, columns in sides for each in columns])
    if may_be_text and not remedy and part == name:
        remedy = f"A text needs quotes of its own: \"'{name}'\"."
    for label, columns in sides:
        of_side = f" of {label}" if len(sides) > 1 else ""
        more = ", ..." if len(columns) > _SHOWN else ""
        remedy += f" Columns{of_side}: {', '.join(list(columns)[:_SHOWN])}{more}."
        remedy += header_remedy(columns)
    problem = f"{name} is not a column of {' or '.join(label for label, _ in sides)}"
    return problem, remedy.strip()


def header_remedy(columns: Collection[str]) -> str:
    """What to do about columns that only a CSV file without a header has, behind other remedies."""
    if "_c0" not in columns:
        return ""
    return " If the first line of a CSV file has the names, write options={'header': True}."


def require(condition: bool, field: str, problem: str, remedy: str = "") -> None:
    """Refuse the object under construction unless ``condition`` holds.

    Raises:
        RequestError: REQUEST_INVALID: ``field`` has ``problem``.
    """
    if not condition:
        raise RequestError(ErrorCode.REQUEST_INVALID, problem, remedy, (field,))


def require_identifier(field: str, name: str) -> None:
    """Refuse what is not a name; it must not be in backticks, which could enclose any text.

    Raises:
        RequestError: REQUEST_INVALID.
    """
    require(bool(name.strip()), field, "is empty")
    fits = name == name.strip() and len(name.encode(errors="replace")) <= LONGEST_NAME
    require(
        fits and not _NO_TEXT.search(name) and not _QUOTED.fullmatch(name),
        field,
        f"{name!r} is not an identifier",
        f"Write a name of at most {LONGEST_NAME} bytes: no line breaks, no blanks and no backticks "
        "around it.",
    )


def require_column(field: str, text: str) -> None:
    """Refuse what is not a column or nested field name; parts may be in backticks.

    Raises:
        RequestError: REQUEST_INVALID.
    """
    require(bool(text.strip()), field, "is empty")
    parts = _PART.findall(text)
    require(
        ".".join(parts) == text and all(map(str.strip, parts)) and not _NO_TEXT.search(text),
        field,
        f"{text!r} is not the name of a column",
        "Write column or column.field, a part with other characters in backticks.",
    )
