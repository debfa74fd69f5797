"""What the random statements of a run met."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.oracle.expressions import Compare, Row
from tests.oracle.merge import Clause, Outcome, Update
from tests.property.cases import Step, Table

SHARES = ("duplicate source keys", "NULL keys", "BY SOURCE clause", "error outcome")
LEAST_SHARE = 0.30
WORK = ("pruned files", "rewrote files", "carried rows", "partition move", "no change")
LEAST_WORK = 5


def features(table: Table, target: list[Row], step: Step, outcome: Outcome) -> set[str]:
    """Names of what one statement meets."""
    keys = [row["id"] for row in step.source]
    known = [key for key in keys if key is not None]
    clauses = step.merge.clauses
    met = {
        "duplicate source keys": len(set(known)) < len(known),
        "NULL keys": None in keys or any(row["id"] is None for row in target),
        "BY SOURCE clause": any(c.when == "not_matched_by_source" for c in clauses),
        "error outcome": bool(outcome.errors),
        "no change": not outcome.changed and not outcome.errors,
        "empty source": not keys,
        "empty target": not target,
        "strict": step.merge.cardinality == "strict",
        "<=> join": isinstance(step.merge.on, Compare) and step.merge.on.operator == "<=>",
        "partition move": table.partition is not None and any(map(_moves, clauses)),
    }
    return {name for name, is_met in met.items() if is_met} | outcome.errors


def _moves(clause: Clause) -> bool:
    action = clause.action
    return isinstance(action, Update) and "p" in dict(action.assignments)


def ranges(numbers: list[int]) -> str:
    """Numbers as text, neighbours as one range."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and found[-1][-1] == number - 1:
            found[-1][1:] = [number]
        else:
            found.append([number])
    return ", ".join("-".join(map(str, ends)) for ends in found)


@dataclass
class Census:
    """Counts over the statements of a run."""

    total: int = 0
    seeds: list[int] = field(default_factory=list)
    met: Counter[str] = field(default_factory=Counter)

    def add(self, names: set[str]) -> None:
        """Count one statement."""
        self.total += 1
        self.met.update(names)

    def __str__(self) -> str:
        lines = [f"{n:6} {n / self.total:5.0%}  {name}" for name, n in self.met.most_common()]
        head = f"{self.total:6}        random statements, seeds {ranges(self.seeds)}"
        return "\n".join([head, *lines])

    def assert_shares(self) -> None:
        """Every feature of ``SHARES`` and ``WORK`` was met often enough."""
        shares = {name: self.met[name] / self.total for name in SHARES}
        assert all(share >= LEAST_SHARE for share in shares.values()), f"\n{self}"
        assert all(self.met[name] >= LEAST_WORK for name in WORK), f"\n{self}"
