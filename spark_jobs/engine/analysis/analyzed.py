"""A statement after analysis, with its read set: what the rest of the engine works on.

The read set is the conditions on the target rows that the statement depends on (rule 11).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql.types import DataType

from spark_jobs.contract.statements import MergeSpec, When
from spark_jobs.engine.analysis.expression_analyzer import ExpressionAnalyzer
from spark_jobs.engine.analysis.expressions import Expression, JoinKey, subquery_columns
from spark_jobs.spi import rows
from spark_jobs.spi.tables import TableHandle


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


@dataclass(frozen=True, slots=True)
class AnalyzedCase:
    """One WHEN clause; ``number`` counts from 0, ``values`` maps columns to assigned expressions.

    ``label`` names it in errors: ``clause 1``, or ``UPDATE``.
    """

    number: int
    label: str
    when: When
    condition: Expression | None
    operation: int
    values: Mapping[str, Expression]

    @property
    def expressions(self) -> list[Expression]:
        """Every expression of the clause."""
        return [*([self.condition] if self.condition else []), *self.values.values()]


@dataclass(frozen=True, slots=True)
class AnalyzedMerge:
    """A MERGE, DELETE or UPDATE whose names and types have been checked.

    DELETE and UPDATE are merges without a source: ``source_alias`` is empty, ``on`` is the WHERE
    condition that selects the matched target rows, and there is one case.

    ``stored_types`` are the declared types of the target's columns; ``target_types`` are their
    types in frames, without string lengths. ``read_set`` describes the target rows that the
    statement can touch.
    """

    table: TableHandle
    target_alias: str
    source_alias: str
    on: Expression
    cases: tuple[AnalyzedCase, ...]
    strict: bool
    target_types: Mapping[str, DataType]
    stored_types: Mapping[str, DataType]
    read_set: TargetReadSet

    def has(self, when: When) -> bool:
        """Whether the statement has a clause of this kind."""
        return any(case.when == when for case in self.cases)

    def only(self, when: When) -> AnalyzedMerge:
        """The statement with only this kind of clause; the clauses keep their numbers."""
        return replace(self, cases=tuple(case for case in self.cases if case.when == when))

    @property
    def has_source(self) -> bool:
        """False for DELETE and UPDATE."""
        return bool(self.source_alias)

    @property
    def allows_repeated_matches(self) -> bool:
        """True if the only MATCHED clause is an unconditional DELETE (rule 2)."""
        matched = [case for case in self.cases if case.when == "matched"]
        return (
            len(matched) == 1
            and matched[0].operation == rows.DELETE
            and matched[0].condition is None
        )

    @property
    def deletes_all_it_selects(self) -> bool:
        """True for DELETE, which deletes every row for which WHERE is TRUE."""
        return not self.has_source and self.cases[0].operation == rows.DELETE

    @property
    def changes_rows(self) -> bool:
        """Whether a clause is for rows of the table."""
        return any(case.when != "not_matched" for case in self.cases)

    @property
    def may_delete(self) -> bool:
        """Whether a clause deletes rows."""
        return any(case.operation == rows.DELETE for case in self.cases)

    @property
    def given_values(self) -> dict[tuple[str, ...], frozenset[int]]:
        """The columns, and fields below them, that cases give values, with these cases' numbers."""
        given: dict[tuple[str, ...], frozenset[int]] = {}
        for case in self.cases:
            for column, value in case.values.items():
                for fields in value.given_fields or [()]:
                    path = (column, *fields)
                    given[path] = given.get(path, frozenset()) | {case.number}
        return given

    @property
    def source_columns(self) -> frozenset[str]:
        """Source columns that any part of the statement reads."""
        return self.on.source_columns.union(
            *(each.source_columns for case in self.cases for each in case.expressions)
        )

    @property
    def subquery_columns(self) -> dict[str, frozenset[str]]:
        """The columns that the statement's subqueries read, by view name."""
        parts = [self.on, *(each for case in self.cases for each in case.expressions)]
        return subquery_columns(parts)

    @property
    def target_columns(self) -> frozenset[str]:
        """Target columns that any part of the statement reads."""
        return self.on.target_columns.union(
            *(each.target_columns for case in self.cases for each in case.expressions)
        )
