"""Answers a job's question, right before it publishes, whether its task still runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_merge.submit.output_lines import OutputLine
from spark_jobs.contract.job_lines import answer_name, asking_operation


@dataclass(frozen=True, slots=True)
class LastLook:
    """``answers`` is the folder in which the job finds what ``ended`` tells.

    ``ended``: what became of the task; empty as long as it goes on.
    """

    answers: Path
    ended: Callable[[], str]

    def answering(self, lines: Iterable[OutputLine]) -> Iterator[OutputLine]:
        """The same lines of the job's output, each question of its own among them answered."""
        for line in lines:
            yield line
            operation_id = asking_operation(line.text) if line.is_own else None
            if operation_id is not None and self.answers.exists():
                half = self.answers / "half"
                half.write_text(self.ended(), encoding="utf-8")
                half.rename(self.answers / answer_name(operation_id))
