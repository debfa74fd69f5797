"""On which line of a statement's text an error is."""

from __future__ import annotations

import re

from spark_jobs.errors import JobError


def on_line(error: JobError, text: str, label: str) -> JobError:
    """The error with ``label`` in front, and the line where ``text`` first has what it names."""
    place = label
    if error.name:
        parts = (f"`?{re.escape(part)}`?" for part in error.name.split("."))
        pattern = r"(?<![\w`.])" + r"\s*\.\s*".join(parts) + r"(?!\w)"
        occurrence = re.search(pattern, text, re.IGNORECASE)
        if occurrence:
            line = text.count("\n", 0, occurrence.start()) + 1
            place += f", line {line}"
    return error.within(place)
