"""The line in which a job names its Spark application, for a link on its task."""

from __future__ import annotations

import re
from typing import Final

_LINE: Final = "Spark application id: {}, web UI: {}"
_TOLD: Final = re.compile(r"Spark application id: ([\w.-]+), web UI: (\S+)")


def application_line(application_id: str, page: str | None) -> str:
    """The line that the job prints; ``page`` is the URL of the driver's web UI, if it has one."""
    return _LINE.format(application_id, page or "none")


def told_application(line: str) -> tuple[str, str] | None:
    """The id and web UI in a line of a job's output; None if it names no application."""
    found = _TOLD.search(line)
    return (found[1], found[2]) if found else None
