"""What a job prints before it publishes, and what whoever started it answers.

The answer is a file beside the request: empty as long as the job's task goes on, else it tells what
became of the task.
"""

from __future__ import annotations

from typing import Final

_QUESTION: Final = "About to publish. Does the task of operation {} still run?"


def question(operation_id: str) -> str:
    """The line that the job prints."""
    return _QUESTION.format(operation_id)


def asks(line: str, operation_id: str) -> bool:
    """Whether a line of a job's output is its question."""
    return question(operation_id) in line
