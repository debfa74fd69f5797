"""Lines of a job's output, by who speaks: the job itself, Spark's client, or anything else.

Rows and libraries print what they like, line breaks included. The job's own lines have its secret.
Those of Spark's client are what its loggers write before the job says anything: until then no row
has been read. One line asks, right before the job publishes, whether its task still runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spark_jobs.contract.job_lines import answer_name, asking_operation, without_secret

# Spark's pattern of log4j, that of its shells, and its default without any settings.
_CLIENT: Final = re.compile(
    r"(?:\d\d/\d\d/\d\d \d\d:\d\d:\d\d |\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} |)"
    r"(?:INFO|WARN|ERROR) (?P<logger>\w+): ?(?P<text>.*)"
)


@dataclass(frozen=True, slots=True)
class OutputLine:
    """A line of the output, without the job's secret and the line break.

    ``is_own``: the job itself says it. ``client`` is the logger of Spark's client whose message it
    belongs to, empty for others, and ``said`` what it says there.
    """

    text: str
    is_own: bool = False
    client: str = ""
    said: str = ""


def output_lines(lines: Iterable[str], secret: str) -> Iterator[OutputLine]:
    """The lines of a job's output; ``secret`` is the one that the job was given."""
    logger, has_begun = "", False
    for raw in lines:
        text, is_own = without_secret(secret, raw.rstrip("\r\n"))
        has_begun = has_begun or is_own
        if is_own or has_begun:
            yield OutputLine(text, is_own)
            continue
        client_line = _CLIENT.fullmatch(text)
        if client_line is not None:
            logger = client_line["logger"]
        elif not text[:1].isspace():
            logger = ""
        yield OutputLine(text, client=logger, said=client_line["text"] if client_line else text)


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
