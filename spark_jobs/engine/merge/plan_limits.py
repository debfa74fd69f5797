"""The sizes of a source that decide how its merge is planned."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """``broadcast``: bytes of source that may be sent to every executor.

    ``filter_share``: up to how many source rows for each target row the target is read through a
    dynamic filter; with more of them it would let most rows pass. 0: never.
    """

    broadcast: int = 150 * 1024 * 1024
    filter_share: float = 0.25
