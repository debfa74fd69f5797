"""A process that takes part in races: it prepares itself once, and races as often as it is told.

Each line of its standard input is JSON: the first one is its plan, the others are races. It says
``READY`` when it can begin, and ``DONE`` after each race.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

READY = "ready to race"
DONE = "done with a race"

Plan = dict[str, Any]


def take_part(opened: Callable[[Plan], AbstractContextManager[Callable[[Plan], None]]]) -> None:
    """Prepare what ``opened`` makes of the plan, and let it run each race."""
    plan = json.loads(sys.stdin.readline())
    with opened(plan) as race:
        _say(READY)
        for line in sys.stdin:
            race({**plan, **json.loads(line)})
            _say(DONE)


def _say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()
