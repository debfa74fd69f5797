"""Answers a job's question, right before it publishes, whether its task still runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from spark_jobs.contract.last_look import asks


@dataclass(frozen=True, slots=True)
class LastLook:
    """``answer`` is the file in which the job finds what ``ended`` tells.

    ``ended``: what became of the task; empty as long as it goes on.
    """

    operation_id: str
    answer: Path
    ended: Callable[[], str]

    def answering(self, lines: Iterator[str]) -> Iterator[str]:
        """The same lines of the job's output, each question among them answered."""
        for line in lines:
            yield line
            if asks(line, self.operation_id) and self.answer.parent.exists():
                half = self.answer.with_suffix(".half")
                half.write_text(self.ended(), encoding="utf-8")
                half.rename(self.answer)
