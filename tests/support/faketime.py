"""Processes whose clock is wrong, by libfaketime (Debian's package ``libfaketime``).

Only what the process asks its own machine is wrong. Times of files are right, as are those of a
store that other machines share.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

_PLACES = ("/usr/lib/*/faketime/libfaketimeMT.so.1", "/usr/lib64/faketime/libfaketimeMT.so.1")
MISSING = "needs libfaketime (Debian's package libfaketime)"


def library() -> str | None:
    """The library to preload; None: it is not installed."""
    found = [str(path) for place in _PLACES for path in Path("/").glob(place.removeprefix("/"))]
    return found[0] if found else None


def clock(days: float) -> Mapping[str, str]:
    """Settings of a process's environment; its clock is so many days ahead.

    Raises:
        FileNotFoundError: libfaketime is missing.
    """
    if not days:
        return {}
    preloaded = library()
    if preloaded is None:
        raise FileNotFoundError(MISSING)
    return {
        "LD_PRELOAD": preloaded,
        "FAKETIME": f"{days:+.3f}d",
        "NO_FAKE_STAT": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def mend_sleep() -> None:
    """Let this process sleep where its clock is wrong; to be called before it does anything.

    Python sleeps until a time of the monotonic clock, which libfaketime takes for one of its own.
    """
    if "FAKETIME" in os.environ:
        time.sleep = lambda seconds: select.select([], [], [], seconds) and None


@pytest.fixture
def wrong_clocks() -> None:
    """Skips where no clock can be set wrong."""
    if library() is None:
        pytest.skip(MISSING)
