"""Guards that just hold for what a dry run told of a statement, and those that just do not."""

from __future__ import annotations

import math
from typing import Any

from spark_jobs.contract.guards import MEANT_FOR, Guards, Limit
from spark_jobs.contract.result import JobResult
from tests.conformance.behaviour import Behaviour

_COUNTS = {"deleted_rows": "deleted", "updated_rows": "updated", "inserted_rows": "inserted"}
_COSTS = {"max_files_rewritten": Limit(0), "max_bytes_rewritten": 0}


def costs_of(behaviour: Behaviour) -> Guards:
    """Guards by which a dry run tells what the statement may have to rewrite."""
    return Guards(**_meant(behaviour, _COSTS))


def limits(
    behaviour: Behaviour, told: JobResult, table_rows: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The guards that just hold, and those that just do not, of a dry run with ``costs_of``.

    All sources have five rows.
    """
    metrics = told.metrics
    kept: dict[str, Any] = {"min_source_rows": Limit(5), "max_source_rows": Limit(5)}
    tripped: dict[str, Any] = {"min_source_rows": Limit(6), "max_source_rows": Limit(4)}
    for ending, count in _COUNTS.items():
        number: int = getattr(metrics, count)
        kept |= {f"min_{ending}": Limit(number), f"max_{ending}": Limit(number)}
        tripped[f"min_{ending}"] = Limit(number + 1)
        if number:
            tripped[f"max_{ending}"] = Limit(number - 1)
    shares = {"deleted": metrics.deleted, "changed": metrics.deleted + metrics.updated}
    for name, number in shares.items():
        share = number / table_rows
        # A third has no number of its own.
        kept[f"max_{name}_share"] = min(math.nextafter(share, 1), 1.0)
        kept[f"max_partition_{name}_share"] = 1.0
        if number:
            tripped[f"max_{name}_share"] = share - 1e-6
            tripped[f"max_partition_{name}_share"] = 1e-9
    for name in _COSTS:
        (seen,) = [_number(each.seen) for each in told.metrics.guards if each.name == name] or [0]
        is_bytes = name == "max_bytes_rewritten"
        kept[name] = seen if is_bytes else Limit(seen)
        if seen:
            tripped[name] = seen - 1 if is_bytes else Limit(seen - 1)
    return _meant(behaviour, kept), _meant(behaviour, tripped)


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _meant(behaviour: Behaviour, guards: dict[str, Any]) -> dict[str, Any]:
    kind = behaviour.statement.kind if behaviour.statement else "merge"
    return {name: each for name, each in guards.items() if kind in MEANT_FOR[name]}
