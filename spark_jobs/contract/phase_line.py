"""The line in which a job tells its operator the phase that begins, for the text of a time-out."""

from __future__ import annotations

import re
from typing import Final

_LINE: Final = "Phase begins: {}"
_TOLD: Final = re.compile(r"Phase begins: (\w+)")


def phase_line(name: str) -> str:
    """The line that the job prints."""
    return _LINE.format(name)


def told_phase(line: str) -> str | None:
    """The phase that a line of a job's output tells; None if it tells none."""
    found = _TOLD.search(line)
    return found[1] if found else None
