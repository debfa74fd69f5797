"""Checks a statement against the columns of its target and sources, without reading any row.

Only what is wrong for sure is reported, in the words of the job's own analysis; the job checks the
rest against the schemas that Spark reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from airflow_provider_merge.checks.assignable import Assignable, of_insert, of_merge
from airflow_provider_merge.checks.expressions import Name, literal_type, names_in, value_of
from airflow_provider_merge.checks.relations import Relation, column_of
from airflow_provider_merge.checks.type_families import family_of, may_be_stored
from spark_jobs.contract.compaction import CompactSpec, require_named
from spark_jobs.contract.compaction_order import resolved_terms
from spark_jobs.contract.inserts import (
    DropPartitionsSpec,
    InsertOverwriteSpec,
    InsertStatement,
    PartitionSpec,
    PartitionStatement,
    TruncateTableSpec,
)
from spark_jobs.contract.sql_text import unquoted
from spark_jobs.contract.statements import (
    Assignment,
    DeleteSpec,
    InsertAction,
    InsertAllAction,
    MergeCase,
    MergeSpec,
    RowStatement,
    UpdateAction,
    UpdateAllAction,
    UpdateSpec,
)
from spark_jobs.errors import AnalysisError, ErrorCode


@dataclass(frozen=True, slots=True)
class StatementCheck:
    """A statement's target and sources, by name; every method raises what it finds first.

    ``partition_keys`` None: they are not known. ``is_reserved``: whether the target's format has a
    use of its own for columns of a name; None: for no name.

    Raises:
        AnalysisError: COLUMN_NOT_FOUND, AMBIGUOUS_REFERENCE, TYPE_MISMATCH, EXPRESSION_INVALID.
        NotSupportedError: a new column has a reserved name.
        RequestError: a partition to compact has no name.
    """

    target: Relation
    sources: Mapping[str, Relation] = field(default_factory=dict)
    partition_keys: Sequence[str] | None = None
    is_reserved: Callable[[str], bool] | None = None
    fixed: Sequence[str] = ()

    def statement(self, spec: RowStatement | PartitionStatement | CompactSpec) -> None:
        """Check any statement."""
        if isinstance(spec, MergeSpec):
            self._merge(spec)
        elif isinstance(spec, UpdateSpec | DeleteSpec):
            self._filtered(spec)
        else:
            self._partitions(spec)

    def _merge(self, spec: MergeSpec) -> None:
        target = self.target.known_as(spec.target_alias)
        source = self.sources[spec.source].known_as(spec.source_alias)
        assignable = of_merge(spec, target, source)
        assignable.require_addable(self.is_reserved)
        assignable.require_not_wider(self.fixed)
        _check_names(spec.on, [target, source], "ON")
        visible = {
            "matched": [target, source],
            "not_matched": [source],
            "not_matched_by_source": [target],
        }
        for number, case in enumerate(spec.cases):
            where = spec.place(number)
            if case.condition is not None:
                _check_names(case.condition, visible[case.when], f"condition of {where}")
            self._action(case, assignable, source, visible[case.when], where)

    def _action(
        self,
        case: MergeCase,
        target: Assignable,
        source: Relation,
        seen: Sequence[Relation],
        where: str,
    ) -> None:
        action = case.action
        if isinstance(action, UpdateAction):
            _check_assignments(action.assignments, target, seen, where)
        elif isinstance(action, UpdateAllAction | InsertAllAction):
            if not target.evolves:
                _check_all(target.table, source, where)
        elif isinstance(action, InsertAction):
            _check_insert(action, target, seen, where)

    def _filtered(self, spec: UpdateSpec | DeleteSpec) -> None:
        target = self.target.known_as(spec.target_alias)
        if spec.where is not None:
            _check_names(spec.where, [target], "WHERE")
        if isinstance(spec, UpdateSpec):
            _check_assignments(spec.assignments, Assignable(target), [target], "UPDATE")

    def _partitions(self, spec: PartitionStatement | CompactSpec) -> None:
        if isinstance(spec, CompactSpec):
            require_named(spec.partitions, self.partition_keys or ())
            if spec.asked_order and self.target.columns is not None:
                resolved_terms(*spec.asked_order, self.target.label, self.target.columns)
        if isinstance(spec, DropPartitionsSpec | CompactSpec):
            for index, partition in enumerate(spec.partitions):
                self._keys(partition, f"partitions[{index}]")
            return
        self._keys(spec.partition, "PARTITION")
        if isinstance(spec, TruncateTableSpec):
            return
        self._keys(spec.partition_columns, "PARTITION")
        self._rows(spec)

    def _rows(self, spec: InsertStatement) -> None:
        source = self.sources[spec.source]
        assignable = of_insert(spec, self.target, source)
        assignable.require_addable(self.is_reserved)
        assignable.require_not_wider(self.fixed if spec.by_name else ())
        for column in spec.columns:
            assignable.column(column, "INSERT")
        stored = Assignable(self.target, source if spec.schema_evolution else None)
        for column in spec.order_by:
            stored.column(_without_direction(column), "order_by")
        if isinstance(spec, InsertOverwriteSpec):
            self.expected(spec.expected_partitions)

    def expected(self, partitions: Sequence[PartitionSpec] | None) -> None:
        """Check the names in the partitions that may change; None: all may."""
        for index, partition in enumerate(partitions or ()):
            self._keys(partition, f"expected_partitions[{index}]")

    def _keys(self, names: Iterable[str], where: str) -> None:
        if self.partition_keys is None:
            return
        known = {key.lower() for key in self.partition_keys}
        for name in map(unquoted, names):
            if name.lower() in known:
                continue
            table, keys = self.target.label, ", ".join(self.partition_keys)
            if not known:
                problem = f"{table} has no partitions"
            elif self.target.find(name):
                problem = f"{name} is not a partition column of {table}"
            else:
                problem = f"{name} is not a column of {table}"
            remedy = f"Its partition columns are: {keys}." if keys else "Leave it out."
            raise AnalysisError(ErrorCode.COLUMN_NOT_FOUND, problem, remedy, (where,), name)


def _check_names(text: str, seen: Sequence[Relation], place: str) -> None:
    for name in names_in(text):
        column_of(name, seen, place)


def _check_assignments(
    assignments: Iterable[Assignment], target: Assignable, seen: Sequence[Relation], where: str
) -> None:
    for assignment in assignments:
        column = target.column(assignment.column, where)
        _check_value(assignment.value, target.table, column, seen, where)


def _check_insert(
    action: InsertAction, target: Assignable, seen: Sequence[Relation], where: str
) -> None:
    table = target.table
    columns: list[str | None] = [target.column(name, where) for name in action.columns]
    if not columns:
        if table.columns is None or target.evolves:
            columns = [None] * len(action.values)
        elif len(action.values) != len(table.columns):
            raise AnalysisError(
                ErrorCode.EXPRESSION_INVALID,
                f"{where}: INSERT has {len(action.values)} values for {len(table.columns)} "
                f"columns of {table.label}",
                "Name the columns that get a value.",
            )
        else:
            columns = list(table.columns)
    for column, value in zip(columns, action.values, strict=True):
        _check_value(value, table, column, seen, where)


def _check_all(target: Relation, source: Relation, where: str) -> None:
    """``*`` needs a source column of the name of each target column."""
    if source.columns is None:
        return
    for name in target.columns or ():
        if not source.find(name):
            raise AnalysisError(
                ErrorCode.COLUMN_NOT_FOUND,
                f"{where}: * needs a source column {name}, but {source.label} has only: "
                f"{', '.join(source.columns)}",
                "Add the column to the source, or assign the columns one by one.",
            )


def _check_value(
    value: str, target: Relation, column: str | None, seen: Sequence[Relation], where: str
) -> None:
    """Check the columns that a value names and, where it is known, its type."""
    place = f"value of {column} in {where}" if column else f"value in {where}"
    _check_names(value, seen, place)
    given = _type_of(value, seen)
    wanted = (target.columns or {}).get(column or "", "")
    if not may_be_stored(family_of(given), family_of(wanted)):
        raise AnalysisError(
            ErrorCode.TYPE_MISMATCH,
            f"a value of type {given} cannot be stored as {wanted}",
            "Cast the value explicitly.",
            (where, f"column {column}"),
            column or "",
        )


def _type_of(value: str, seen: Sequence[Relation]) -> str:
    """The type of a literal, a cast or a column; empty: not known."""
    from sqlglot import exp

    expression = value_of(value)
    if expression is None:
        return ""
    if isinstance(expression, exp.Column):
        name: Name = tuple(part.name for part in expression.parts)
        column = column_of(name, seen, "", unique=False) if name[0].lower() != "default" else None
        return (column[0].columns or {}).get(column[1], "") if column else ""
    return literal_type(expression) or ""


def _without_direction(column: str) -> str:
    """A column of ORDER BY without ASC or DESC."""
    words = column.split()
    if len(words) < 2 or words[-1].upper() not in ("ASC", "DESC"):
        return column
    return column.rstrip()[: -len(words[-1])].rstrip()
