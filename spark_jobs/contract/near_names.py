"""Names that are chosen from a list: what was meant by one that is not in it."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from spark_jobs.errors import ErrorCode, RequestError

# Not compared: it is no name, and comparing takes time by the square.
_LONGEST: Final = 200


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
