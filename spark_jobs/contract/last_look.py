"""The question that a job prints before it publishes, and the answer of whoever started the job.

The answer is a file in a folder that both know: empty if the job's task is still running, else it
says what became of the task.
"""

from __future__ import annotations

import re
from typing import Final

_QUESTION: Final = "About to publish. Does the task of operation {} still run?"
_ASKED: Final = re.compile(re.escape(_QUESTION).replace(r"\{\}", r"([\w-]+)"))


def question(operation_id: str) -> str:
    """The line that the job prints."""
    return _QUESTION.format(operation_id)


def asking(line: str) -> str | None:
    """The operation whose question a line of a job's output is; None if it is not a question."""
    found = _ASKED.search(line)
    return found[1] if found else None


def answer_name(operation_id: str) -> str:
    """The name of the answer file."""
    return f"answer-{operation_id}"
