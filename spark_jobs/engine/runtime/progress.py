"""Progress lines in the driver's log, and wall time per phase."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from spark_jobs.contract.job_lines import own_line, phase_line
from spark_jobs.contract.result import TimedPhase

log = logging.getLogger("airflow_provider_merge.job")
# Nobody hears of them unless the operator does.
_phases = log.getChild("phases")
_TOLD: Final = "told_to_operator"
# Those of a compaction repeat with each group of partitions.
_MOST_TIMED: Final = 200


class Progress:
    """Reports what a job is doing; ``seconds`` holds the wall time of finished phases.

    ``timed`` are the first of these, ``now`` is the phase at work, and ``attempts`` counts the runs
    of the statement. ``job_group`` is that of the statement's Spark jobs; None: all are its own.
    """

    def __init__(self, job_group: str | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self.timed: list[TimedPhase] = []
        self.now = ""
        self.attempts = 1
        self.job_group = job_group

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a phase under ``name``; the times of repeated phases add up."""
        _phases.debug("%s", phase_line(name), extra={_TOLD: True})
        began, started = time.time(), time.monotonic()
        before, self.now = self.now, name
        try:
            yield
        finally:
            self.now = before
            seconds = time.monotonic() - started
            self.spent(name, seconds)
            if len(self.timed) < _MOST_TIMED:
                self.timed.append(TimedPhase(name, round(began, 3), round(seconds, 3)))

    def spent(self, name: str, seconds: float) -> None:
        """Add the seconds of a phase that was timed elsewhere."""
        self.seconds[name] = round(self.seconds.get(name, 0.0) + seconds, 3)

    def say(self, message: str) -> None:
        """Write a progress line."""
        log.info(message)

    def warn(self, message: str) -> None:
        """Write a line that deserves a look, although the job goes on."""
        log.warning("%s", message)


def tell_operator(message: str) -> None:
    """Write a line that the job's operator reads, too; it believes signed ones alone."""
    log.info("%s", message, extra={_TOLD: True})


def sign_lines(secret: str) -> None:
    """Put the job's secret in front of lines for its operator, as the root logger prints them."""
    for handler in logging.getLogger().handlers:
        handler.addFilter(_Signature(secret))


def tell_phases() -> None:
    """From here on tell the operator which phase begins; it shows these lines to nobody."""
    _phases.setLevel(logging.DEBUG)


class _Signature(logging.Filter):
    def __init__(self, secret: str) -> None:
        super().__init__()
        self._secret = secret

    def filter(self, record: logging.LogRecord) -> bool:
        if getattr(record, _TOLD, False):
            record.msg, record.args = own_line(self._secret, record.getMessage()), ()
            setattr(record, _TOLD, False)
        return True
