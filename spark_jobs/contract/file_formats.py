"""The formats of files that sources have."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

from spark_jobs.contract.checks import require

# Spark may have others, by their name or their class: Delta, XML and the like.
_FORMATS: Final = ("csv", "json", "text", "avro", "parquet", "orc")
_ALIKE: Final = 0.75


def require_format(name: str) -> None:
    """Refuse a name that is almost one of the usual formats.

    Raises:
        RequestError: REQUEST_INVALID.
    """
    lower = name.lower()
    meant = get_close_matches(lower, _FORMATS, 1, _ALIKE)
    meant += [each for each in _FORMATS if sorted(each) == sorted(lower)]
    problem = f"Spark has no format {name!r}"
    remedy = f"Did you mean {''.join(meant[:1])}? Formats of files: {', '.join(_FORMATS)}."
    require(lower in _FORMATS or not meant, "format", problem, remedy)
