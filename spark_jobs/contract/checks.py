"""Checks that the contract's objects run on their own structure."""

from __future__ import annotations

import re
from typing import Final

from spark_jobs.errors import ErrorCode, RequestError

# In bytes: with what catalogs add, a name must fit into the 255 bytes of a folder name.
LONGEST_NAME: Final = 240
_NO_TEXT: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_QUOTED: Final = re.compile(r"`(?:[^`]|``)*`")
_PART: Final = re.compile(r"(?:`(?:[^`]|``)+`|[^.`])+")


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
