"""Limits on a source's size that decide how its merge is planned."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """``broadcast``: the maximum size in bytes of a source that is sent to every executor.

    ``filter_share``: the maximum number of source rows per target row at which the target is read
    with a dynamic filter; with more, the filter would let most rows pass. 0: never.
    """

    broadcast: int = 150 * 1024 * 1024
    filter_share: float = 0.25
