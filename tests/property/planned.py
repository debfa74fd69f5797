"""Random merges that a physical plan can run."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from functools import reduce
from typing import Any, Final

from spark_jobs.contract.result import JobResult
from spark_jobs.engine.merge.physical_plan import Plan, PlanLimits
from spark_jobs.errors import ErrorCode
from tests.oracle.expressions import And, Column, Compare, Expression
from tests.oracle.merge import Merge
from tests.property.cases import Chain, Step

# Sources have as many rows as targets.
LIMITS: Final = PlanLimits(filter_share=1000.0, located_share=1000.0)
_KEY: Final = Compare("=", Column("t", "id"), Column("s", "id"))


def planned_chain(chain: Chain, plan: Plan) -> Chain:
    """Merges of ``chain`` that run under ``plan`` or not at all."""
    return replace(suited_chain(chain, plan), limits=replace(LIMITS, plan=plan), plan="auto")


def suited_chain(chain: Chain, plan: Plan) -> Chain:
    """The merges of ``chain``, changed so that ``plan`` can run most of them.

    Only the join plan knows NOT MATCHED BY SOURCE, and needs no equality in ON. The prepared plan
    needs clauses that do not read the target, and nothing but equalities in ON.
    """
    steps = [_suiting(step, plan) for step in chain.steps]
    return replace(chain, steps=tuple(step for step in steps if step is not None))


def is_refused(result: JobResult, chain: Chain) -> bool:
    """Whether the plan of ``chain`` cannot run the statement."""
    error = result.error
    return (
        chain.limits.plan is not None
        and error is not None
        and error.code == ErrorCode.NOT_SUPPORTED.name
        and error.message.startswith(f"The plan {chain.limits.plan} cannot run this statement")
    )


def _suiting(step: Step, plan: Plan) -> Step | None:
    """The step as ``plan`` may run it; None if nothing is left."""
    merge = step.statement
    if not isinstance(merge, Merge):
        return None
    on, clauses = merge.on, merge.clauses
    if plan != "join":
        clauses = tuple(each for each in clauses if each.when != "not_matched_by_source")
        equal = _equalities(on) or [_KEY]
        on = on if _equalities(on) else And(_KEY, on)
    if plan == "prepared":
        on, clauses = reduce(And, equal), _of_source(clauses)
    if not clauses:
        return None
    return replace(step, statement=replace(merge, on=on, clauses=clauses))


def _equalities(on: Expression) -> list[Expression]:
    """The parts of ON that compare a column of each side."""
    if isinstance(on, And):
        return [*_equalities(on.left), *_equalities(on.right)]
    is_equality = (
        isinstance(on, Compare)
        and on.operator in ("=", "<=>")
        and isinstance(on.left, Column)
        and isinstance(on.right, Column)
        and on.left.side != on.right.side
    )
    return [on] if is_equality else []


def _of_source(part: Any) -> Any:
    """``part`` with the source's columns instead of those of the target, which have their names.

    The source's ids may be too large to be computed with.
    """
    if isinstance(part, Column):
        is_id = part.side == "t" and part.name == "id"
        return Column("s", "v" if is_id else part.name)
    if isinstance(part, tuple):
        return tuple(map(_of_source, part))
    if is_dataclass(part) and not isinstance(part, type):
        values = {each.name: getattr(part, each.name) for each in fields(part)}
        changed = {name: _of_source(value) for name, value in values.items()}
        return replace(part, **changed)
    return part
