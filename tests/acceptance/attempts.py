"""What a case shall do in each mode of cardinality.

A case of portability ``rule`` runs in both. Its ``cardinality_error_in`` says in which rule it
fails: ``spark_v2`` is our ``strict``, ``ansi_effective`` our default, except for a sole MATCHED
clause that deletes without a condition, which we let several source rows meet. Where a mode accepts
what the case's own engine refuses, the rows were computed by hand: ``by_hand.json``. Where nobody
did, and where the category of an error is not known, only success or failure is checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spark_jobs.contract.statements import Cardinality
from tests.acceptance.cases import CATEGORIES, Case, Expected
from tests.acceptance.running import Attempt

_BY_HAND = Path(__file__).with_name("by_hand.json")
_ERROR = Expected(category="cardinality")
_MATCHED = re.compile(
    r"\bWHEN\s+MATCHED\s+(?:(AND)\b.*?)?\bTHEN\s+(\w+)", re.IGNORECASE | re.DOTALL
)


def attempts(case: Case, by_hand: dict[str, Any]) -> Iterator[Attempt]:
    """The runs of a case; one that cannot be run has a ``problem``."""
    rules = case.cardinality_error_in
    if rules is None:
        category = case.expected.category
        is_known = category is None or category in CATEGORIES
        unchecked = "" if is_known else f"category {category!r} is not known"
        yield Attempt(case, case.expected, problem=case.problem, unchecked=unchecked)
        return
    fails = {
        "effective": rules["ansi_effective"] and not _deletes_only(case.statement),
        "strict": rules["spark_v2"],
    }
    mode: Cardinality
    for mode in ("effective", "strict"):
        yield Attempt(case, _ERROR, mode) if fails[mode] else _accepted(case, by_hand, mode)


def _deletes_only(statement: str) -> bool:
    clauses = _MATCHED.findall(statement)
    return [(condition, action.upper()) for condition, action in clauses] == [("", "DELETE")]


def _accepted(case: Case, by_hand: dict[str, Any], mode: Cardinality) -> Attempt:
    if case.expected.rows is not None:
        return Attempt(case, case.expected, mode)
    if case.id in by_hand:
        return Attempt(case, Expected(rows=tuple(by_hand[case.id])), mode)
    return Attempt(case, Expected(), mode, unchecked=f"its rows are not in {_BY_HAND.name}")


def read_by_hand() -> dict[str, Any]:
    """Rows by case id."""
    found: dict[str, Any] = json.loads(_BY_HAND.read_text(encoding="utf-8"))
    return found
