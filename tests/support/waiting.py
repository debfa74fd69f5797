"""Waiting for what other processes do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
# Only reached when something is broken; a busy machine must not fail a test.
PATIENCE = 900.0


def wait_for(what: str, look: Callable[[], T], *, every: float = 0.2) -> T:
    """The first true value that ``look`` returns."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, f"waited {PATIENCE:g} seconds in vain for {what}"
        time.sleep(every)
