"""Lines of a job's output that its operator believes, told from what rows and libraries print.

The operator makes a secret for each job, and leaves it in a file of the private folder that both
know. The job writes it in front of what it tells the operator; nobody else knows it.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Final

_FILE: Final = "line-secret"
_SEPARATOR: Final = " "


def new_line_secret(folder: Path) -> str:
    """A secret for the job whose private folder this is, also written there (mode 0600)."""
    secret = secrets.token_hex(16)
    path = folder / _FILE
    path.touch(mode=0o600, exist_ok=False)
    path.write_text(secret, encoding="ascii")
    return secret


def taken_line_secret(folder: Path) -> str:
    """The secret in the folder, which goes: nothing that the job runs later can read it.

    Empty if there is none.
    """
    path = folder / _FILE
    try:
        secret = path.read_text(encoding="ascii")
        path.unlink()
    except OSError:
        return ""
    return secret


def own_line(secret: str, text: str) -> str:
    """``text`` as the operator believes it."""
    return f"{secret}{_SEPARATOR}{text}"


def told(secret: str, line: str) -> tuple[str, bool]:
    """A line of the output without the secret, and whether it had it."""
    start, found, text = line.partition(own_line(secret, ""))
    return start + text, bool(found)
