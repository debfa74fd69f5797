"""What the random statements of a run met."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import sqrt

from tests.oracle.expressions import Compare, Row, Value
from tests.oracle.merge import Merge, Outcome, Update
from tests.oracle.statements import InsertRows, Statement, UpdateTable
from tests.property.cases import KINDS, Step, Table
from tests.property.ledger import ranges

# Of the MERGE statements, and of all statements.
MERGE_SHARES = ("duplicate source keys", "NULL keys", "BY SOURCE clause", "error outcome")
LEAST_MERGE_SHARE = 0.30
SHARES = {
    "MERGE": 0.4,
    "UPDATE": 0.1,
    "DELETE": 0.1,
    "INSERT": 0.05,
    "SQL text": 0.3,
    "subquery": 0.1,
}
SHARES["UPDATE: error outcome"] = 0.015
SHARES |= {f"on {kind.name}": 0.7 / len(KINDS) for kind in KINDS}
WORK = ("pruned files", "rewrote files", "carried rows", "partition move", "no change")
WORK += ("marked rows",)
LEAST_WORK = 0.02


def features(table: Table, target: list[Row], step: Step, outcome: Outcome) -> set[str]:
    """Names of what one statement meets; what only MERGE has is named so."""
    statement = step.statement
    met = {
        "SQL text": step.form != "builder",
        "error outcome": bool(outcome.errors),
        "no change": not outcome.changed and not outcome.errors,
        "empty target": not target,
        "partition move": table.partition is not None and "p" in _assigned(statement),
    }
    names = {name for name, is_met in met.items() if is_met} | outcome.errors
    names.add(f"on {table.kind.name}")
    if isinstance(statement, Merge):
        keys = [row["id"] for row in step.source]
        kind, own = "MERGE", _merge_features(statement, keys, target, outcome)
        return names | {kind} | {f"MERGE: {name}" for name in own}
    if isinstance(statement, InsertRows):
        return names | {"INSERT", f"INSERT: {statement.mode}"}
    if "InSource" in repr(statement):  # ExistsInSource too
        names.add("subquery")
    kind = "UPDATE" if isinstance(statement, UpdateTable) else "DELETE"
    return names | {kind} | ({f"{kind}: error outcome"} if outcome.errors else set())


def _merge_features(
    merge: Merge, keys: list[Value], target: list[Row], outcome: Outcome
) -> set[str]:
    known = [key for key in keys if key is not None]
    met = {
        "duplicate source keys": len(set(known)) < len(known),
        "NULL keys": None in keys or any(row["id"] is None for row in target),
        "BY SOURCE clause": any(c.when == "not_matched_by_source" for c in merge.clauses),
        "error outcome": bool(outcome.errors),
        "empty source": not keys,
        "strict": merge.cardinality == "strict",
        "<=> join": isinstance(merge.on, Compare) and merge.on.operator == "<=>",
    }
    return {name for name, is_met in met.items() if is_met}


def _assigned(statement: Statement) -> set[str]:
    """The columns that a statement assigns in rows that exist."""
    if isinstance(statement, UpdateTable):
        return set(dict(statement.assignments))
    clauses = statement.clauses if isinstance(statement, Merge) else ()
    updates = [clause.action for clause in clauses if isinstance(clause.action, Update)]
    return {name for update in updates for name, _ in update.assignments}


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
        """Every kind of statement, of feature and of work was met as often as chance allows.

        Of a few statements, twice the deviation of a Poisson count may be missing.
        """
        least = dict.fromkeys(MERGE_SHARES, LEAST_MERGE_SHARE * self.met["MERGE"])
        least = {f"MERGE: {name}": count for name, count in least.items()}
        least |= {name: share * self.total for name, share in SHARES.items()}
        least |= dict.fromkeys(WORK, LEAST_WORK * self.total)
        rare = {
            name: count for name, count in least.items() if self.met[name] < count - 2 * sqrt(count)
        }
        assert not rare, f"met less often than {rare}:\n{self}"
