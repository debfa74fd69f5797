"""Answers a job's question, right before it publishes, whether its task still runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from spark_jobs.contract.last_look import answer_name, asking


@dataclass(frozen=True, slots=True)
class LastLook:
    """``answers`` is the folder in which the job finds what ``ended`` tells.

    ``ended``: what became of the task; empty as long as it goes on.
    """

    answers: Path
    ended: Callable[[], str]

    def answering(self, lines: Iterator[str]) -> Iterator[str]:
        """The same lines of the job's output, each question among them answered."""
        for line in lines:
            yield line
            operation_id = asking(line)
            if operation_id is not None and self.answers.exists():
                half = self.answers / "half"
                half.write_text(self.ended(), encoding="utf-8")
                half.rename(self.answers / answer_name(operation_id))
