"""Long lists of tests, of which a run takes a part: the first one, or one that is asked for.

``MERGE_TESTS_TURN`` names the part by a number. `make test-all` leaves out nothing. A test says by
``by_turns(parts)``, a mark, that a run takes one of so many parts of its cases, or asks
``has_turn`` itself. The cases of a table are numbered along its diagonals: each row and each column
has some in every part.
"""

from __future__ import annotations

import os
from zlib import crc32

import pytest

# `make test-all` takes all of them.
EVERYTHING = os.environ.get("MERGE_TESTS") == "all"
_TURN = int(os.environ.get("MERGE_TESTS_TURN", "0"))
MARK = "by_turns"


def has_turn(number: int, parts: int) -> bool:
    """Whether the test of this number is in the part that ``MERGE_TESTS_TURN`` names."""
    return EVERYTHING or number % parts == _TURN % parts


def part(parts: int) -> int:
    """Which of so many parts this run takes."""
    return 0 if EVERYTHING else _TURN % parts


def examples(number: int) -> int:
    """How many examples of a random test a run takes: a third of all."""
    return number if EVERYTHING else number // 3


def leave_out_others(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests marked ``by_turns`` whose turn it is not, unless cases were named."""
    if any("[" in argument for argument in config.args):
        return
    numbers = _Numbers()
    others = {item for item in items if not _has_turn(item, numbers.of(item))}
    if others:
        config.hook.pytest_deselected(items=[item for item in items if item in others])
        items[:] = [item for item in items if item not in others]


def _has_turn(item: pytest.Item, case: int | None) -> bool:
    """``case``: the number of its case; None: it has none, and runs unless it has a number."""
    mark = item.get_closest_marker(MARK)
    if mark is None:
        return True
    parts, number = (*mark.args, case)[:2]
    return number is None or has_turn(number, parts)


class _Numbers:
    """Numbers of cases: the sum of their places in each list of values, which begins somewhere."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, int], dict[str, int]] = {}

    def of(self, item: pytest.Item) -> int | None:
        """The number of a case, if it is one; they come in the order of their lists."""
        callspec = getattr(item, "callspec", None)
        if callspec is None:
            return None
        test = item.nodeid.partition("[")[0]
        number = crc32(test.encode())
        for position, value in enumerate(callspec._idlist):
            places = self._places.setdefault((test, position), {})
            number += places.setdefault(value, len(places))
        return number
