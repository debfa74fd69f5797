"""The names of files that are being written, on storage that can rename them when complete."""

from __future__ import annotations

import re
import uuid
from typing import Final

_UNFINISHED: Final = re.compile(r"\.(.+)\.[0-9a-f]{32}\.tmp", re.DOTALL)


def unfinished_name(name: str) -> str:
    """A new temporary name, in the same folder, for the file that will be called ``name``."""
    return f".{name}.{uuid.uuid4().hex}.tmp"


def finished_name(name: str) -> str | None:
    """The final name of the unfinished file ``name``; None if it is not an unfinished file."""
    found = _UNFINISHED.fullmatch(name)
    return found[1] if found else None
