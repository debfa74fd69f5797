"""How often work is tried that other commits overtake, and the pause between two tries."""

from __future__ import annotations

import random
import time
from typing import Final

ATTEMPTS: Final = 5
_BASE_S: Final = 0.2


def back_off(attempt: int) -> None:
    """Pause after try ``attempt`` (from 1): at random, up to 0.2 s times 2 to the power of it.

    Source: exponential backoff with full jitter.
    """
    time.sleep(random.uniform(0, _BASE_S * 2**attempt))  # noqa: S311 - only jitter
