"""Samples something in a thread of its own, for as long as a block runs."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Sampler(ABC):
    """Calls ``sample`` every ``interval`` seconds within a ``with`` block."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    @abstractmethod
    def sample(self) -> None:
        """Look once."""

    def _run(self) -> None:
        while not self._stop.wait(self._interval):
            self.sample()
