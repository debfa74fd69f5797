"""Lines that a job prints for its operator, and the answer to one of them.

Rows and libraries print lines of any text. The operator believes those with a secret that it left
for the job. The answer is a file in a folder that both know: empty if the job's task is still
running, else it says what became of the task.
"""

from __future__ import annotations

import re
import secrets
from pathlib import Path
from typing import Final

_FILE: Final = "line-secret"
_SEPARATOR: Final = " "
_APPLICATION: Final = re.compile(r"Spark application id: ([\w.-]+), web UI: (\S+)")
_PHASE: Final = re.compile(r"Phase begins: (\w+)")
_QUESTION: Final = re.compile(r"About to publish\. Does the task of operation ([\w-]+) still run\?")


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


def without_secret(secret: str, line: str) -> tuple[str, bool]:
    """A line of the output without the secret, and whether it had it."""
    start, found, text = line.partition(own_line(secret, ""))
    return start + text, bool(found)


def application_line(application_id: str, page: str | None) -> str:
    """The line that names the Spark application, for a link on the task.

    ``page`` is the URL of the driver's web UI, if it has one.
    """
    return f"Spark application id: {application_id}, web UI: {page or 'none'}"


def named_application(line: str) -> tuple[str, str] | None:
    """The id and web UI in a line of a job's output; None if it names no application."""
    found = _APPLICATION.search(line)
    return (found[1], found[2]) if found else None


def phase_line(name: str) -> str:
    """The line that tells which phase begins, for the text of a time-out."""
    return f"Phase begins: {name}"


def begun_phase(line: str) -> str | None:
    """The phase that a line of a job's output tells; None if it tells none."""
    found = _PHASE.search(line)
    return found[1] if found else None


def publish_question(operation_id: str) -> str:
    """The line that asks, right before a snapshot is published, whether the task still runs."""
    return f"About to publish. Does the task of operation {operation_id} still run?"


def asking_operation(line: str) -> str | None:
    """The operation whose question a line of a job's output is; None if it is not a question."""
    found = _QUESTION.search(line)
    return found[1] if found else None


def answer_name(operation_id: str) -> str:
    """The name of the answer file."""
    return f"answer-{operation_id}"
