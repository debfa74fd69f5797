"""Long lists of tests, of which a run takes a part: the first one, or one that is asked for."""

from __future__ import annotations

import os

# `make test-all` takes all of them.
EVERYTHING = os.environ.get("MERGE_TESTS") == "all"
_TURN = int(os.environ.get("MERGE_TESTS_TURN", "0"))


def has_turn(number: int, parts: int) -> bool:
    """Whether the test of this number is in the part that ``MERGE_TESTS_TURN`` names."""
    return EVERYTHING or number % parts == _TURN % parts
