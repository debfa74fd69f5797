"""Long lists of tests of which a run takes a part, another part each day."""

from __future__ import annotations

from datetime import UTC, datetime


def has_turn(number: int, parts: int) -> bool:
    """Whether the test of this number is in the part of ``parts`` that is today's (by UTC)."""
    return number % parts == datetime.now(UTC).toordinal() % parts
