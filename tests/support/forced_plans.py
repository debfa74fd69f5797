"""Runs all merges of a process under one physical plan, wherever that plan can run them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args
from unittest import mock

from spark_jobs.contract.result import JobResult
from spark_jobs.engine.merge import merge_run
from spark_jobs.engine.merge.physical_plan import Plan, PlanChoice
from spark_jobs.errors import NotSupportedError

# "auto": the choice is the engine's.
Forced = Literal["auto", "join", "located", "prepared"]
FORCED: tuple[Forced, ...] = get_args(Forced)
_LAZY = "located: a clause fails on a row of the source"


@dataclass
class Tally:
    """How many statements ran under the plan, and why others could not."""

    plan: Forced
    ran: int = 0
    could_not: Counter[str] = field(default_factory=Counter)
    last: PlanChoice | None = None

    def require_ran(self, result: JobResult) -> None:
        """The metrics of the statement that ran last tell the plan that was chosen for it."""
        told, chosen = result.metrics.plan, self.last
        self.last = None
        if told:
            assert chosen is not None
            is_lazy = chosen.plan == "prepared" and told == _LAZY
            assert told == str(chosen) or is_lazy, (told, chosen)

    def __str__(self) -> str:
        """The counts in one line."""
        reasons = "; ".join(f"{count}: {text}" for text, count in self.could_not.most_common())
        return f"plan {self.plan}: {self.ran} attempts ran under it" + (
            f", others not ({reasons})" if reasons else ""
        )


@contextmanager
def forced_plan(plan: Forced) -> Iterator[Tally]:
    """All merges in the block run under ``plan``; those that cannot run under the general plan."""
    choose, tally = merge_run.chosen_plan, Tally(plan)

    def chosen(*parts: Any, **more: Any) -> PlanChoice:
        *statement, limits = parts
        if plan == "auto":
            tally.last = choose(*parts, **more)
        else:
            tally.last = _forced(plan, choose, statement, limits, more)
        if plan in ("auto", tally.last.plan):
            tally.ran += 1
        else:
            tally.could_not[tally.last.reason] += 1
        return tally.last

    with mock.patch.object(merge_run, "chosen_plan", chosen):
        yield tally


def _forced(plan: Plan, choose: Any, statement: Any, limits: Any, more: Any) -> PlanChoice:
    try:
        choice: PlanChoice = choose(*statement, replace(limits, plan=plan), **more)
    except NotSupportedError as error:
        return PlanChoice("join", error.message)
    return choice
