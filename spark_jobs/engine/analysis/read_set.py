"""The read set of a statement: conditions on the target rows that it depends on (rule 11)."""

from __future__ import annotations

from dataclasses import dataclass

from spark_jobs.contract.statements import MergeSpec
from spark_jobs.engine.analysis.expression_analyzer import ExpressionAnalyzer
from spark_jobs.engine.analysis.expressions import Expression, JoinKey


@dataclass(frozen=True, slots=True)
class TargetReadSet:
    """Conditions that every touched target row meets.

    A target row matches no source row if it fails ``on_predicates`` (the target-only conjuncts of
    ON), or if no source row equals it in one of ``join_keys``. ``by_source_predicates`` are the
    target-only conjuncts of each NOT MATCHED BY SOURCE condition; None without such a clause.
    ``has_only_keys``: ON is nothing but ``join_keys``.
    """

    on_predicates: tuple[Expression, ...]
    join_keys: tuple[JoinKey, ...]
    by_source_predicates: tuple[tuple[Expression, ...], ...] | None
    has_only_keys: bool = False


def target_read_set(expressions: ExpressionAnalyzer, spec: MergeSpec) -> TargetReadSet:
    """The read set of a statement whose conditions have been analysed."""
    conjuncts = expressions.conjuncts(spec.on, "both")
    by_source = [case for case in spec.cases if case.when == "not_matched_by_source"]
    return TargetReadSet(
        on_predicates=_target_only([expression for expression, _ in conjuncts]),
        join_keys=tuple(key for _, key in conjuncts if key is not None),
        by_source_predicates=tuple(
            _target_only([each for each, _ in expressions.conjuncts(case.condition, "target")])
            if case.condition is not None
            else ()
            for case in by_source
        )
        if by_source
        else None,
        has_only_keys=all(key is not None for _, key in conjuncts),
    )


def filtered_read_set(where: Expression) -> TargetReadSet:
    """The read set of a DELETE or UPDATE."""
    return TargetReadSet((where,), (), None)


def _target_only(conjuncts: list[Expression]) -> tuple[Expression, ...]:
    return tuple(each for each in conjuncts if each.target_columns and not each.source_columns)
