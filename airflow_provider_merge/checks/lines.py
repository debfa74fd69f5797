"""On which line of a statement's text an error is."""

from __future__ import annotations

import re
from typing import Final

from spark_jobs.errors import JobError, error_of

# A name in the errors of this package.
_NAMED: Final = re.compile(r": (?P<name>\S+) is (?:not )?a (?:partition )?column of ")
_ASSIGNED: Final = re.compile(r": column (?P<name>\S+): a value of type ")


def on_line(error: JobError, text: str, label: str) -> JobError:
    """The error with ``label`` in front, and the line where ``text`` first has what it names."""
    named = _NAMED.search(error.message) or _ASSIGNED.search(error.message)
    place = label
    if named:
        parts = (f"`?{re.escape(part)}`?" for part in named["name"].split("."))
        pattern = r"(?<![\w`.])" + r"\s*\.\s*".join(parts) + r"(?!\w)"
        found = re.search(pattern, text, re.IGNORECASE)
        if found:
            line = text.count("\n", 0, found.start()) + 1
            place += f", line {line}"
    return error_of(error.code, f"{place}: {error.message}", error.remedy)
