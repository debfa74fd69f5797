"""Limits on a source's size that decide how its merge is planned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# join: Spark joins source and target. located: tasks that read target files look their rows up in
# the source, and Spark evaluates the clauses on what they find. prepared: the same, but the clauses
# have been evaluated on the source before.
Plan = Literal["join", "located", "prepared"]


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """``broadcast``: the maximum size in bytes of a source that is sent to every executor.

    ``filter_share``: the maximum number of source rows per target row at which the target is read
    with a dynamic filter; with more, the filter would let most rows pass. 0: never.
    ``located_share``: the same for the plans ``located`` and ``prepared``. ``copied`` and
    ``copied_share`` are used in place of ``broadcast`` and ``located_share`` if nothing has to be
    evaluated for a match and tasks map the source from a local disk. ``plan``: the physical plan
    of every statement, which fails where that plan cannot run it; None: the one that suits the
    statement. If clauses cannot be evaluated on some row of the source, which may be one that
    changes nothing, ``located`` runs in place of ``prepared`` and finds out, even if that is asked
    for.
    """

    broadcast: int = 150 * 1024 * 1024
    filter_share: float = 0.25
    located_share: float = 0.1
    copied: int = 512 * 1024 * 1024
    copied_share: float = 0.5
    plan: Plan | None = None
