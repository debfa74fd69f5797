"""Progress lines in the driver's log, and wall time per phase."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger("airflow_provider_merge.job")


class Progress:
    """Reports what a job is doing; ``seconds`` holds the wall time of finished phases."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a phase under ``name``; the times of repeated phases add up."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.spent(name, time.monotonic() - started)

    def spent(self, name: str, seconds: float) -> None:
        """Add the seconds of a phase that was timed elsewhere."""
        self.seconds[name] = round(self.seconds.get(name, 0.0) + seconds, 3)

    def say(self, message: str) -> None:
        """Write a progress line."""
        log.info(message)
