"""Turns the assignments of UPDATE and INSERT into one expression per column (rule 7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast

from pyspark.sql.types import DataType, StructType

from spark_jobs.contract.checks import header_remedy
from spark_jobs.contract.sql_text import quote
from spark_jobs.contract.statements import (
    Action,
    DeleteAction,
    InsertAction,
    UpdateAction,
    UpdateAllAction,
)
from spark_jobs.engine.analysis.expression_analyzer import ExpressionAnalyzer
from spark_jobs.engine.analysis.expressions import NULL, Expression, Side
from spark_jobs.engine.analysis.nested import Assigned, assign, completed, composed, field_path
from spark_jobs.engine.analysis.opaque_columns import refuse_all_columns, refuse_opaque
from spark_jobs.engine.analysis.store_assignment import ErrorLocation, require_storable
from spark_jobs.engine.runtime.sql_text import find_name, split_name
from spark_jobs.errors import AnalysisError, ErrorCode
from spark_jobs.spi.tables import Column, TableHandle


@dataclass(frozen=True, slots=True)
class AssignmentAnalyzer:
    """Analyses the actions of one statement; ``source`` is None if the statement has none.

    ``stored_types`` are the declared types of the target's columns. ``evolves``: the statement has
    schema evolution, so ``*`` and structs may lack columns and fields.
    """

    expressions: ExpressionAnalyzer
    table: TableHandle
    target: Side
    source: Side | None
    stored_types: Mapping[str, DataType]
    evolves: bool = False

    def values(self, action: Action, sees: str, where: str) -> dict[str, Expression]:
        """The expressions of the columns that ``action`` assigns; empty for DELETE.

        ``sees`` is ``both``, ``target`` or ``source``; ``where`` names the clause in errors.

        Raises:
            RequestError: SYNTAX_ERROR.
            AnalysisError: COLUMN_NOT_FOUND, AMBIGUOUS_REFERENCE, DUPLICATE_ASSIGNMENT,
                EXPRESSION_NOT_ALLOWED, EXPRESSION_INVALID, TYPE_MISMATCH.
        """
        values = self._values(action, sees, where)
        for name, value in values.items():
            require_storable(value.type, self.stored_types[name], ErrorLocation(where, name))
        return values

    def _values(self, action: Action, sees: str, where: str) -> dict[str, Expression]:
        if isinstance(action, DeleteAction):
            return {}
        if isinstance(action, UpdateAction):
            return self._updated(action, sees, where)
        if isinstance(action, InsertAction):
            return self._inserted(action, sees, where)
        if self.source is None:
            raise ValueError("* needs a source")
        return self._all(self.source, isinstance(action, UpdateAllAction), where)

    def _all(self, source: Side, is_update: bool, where: str) -> dict[str, Expression]:
        refuse_all_columns(self.table, "*", where)
        values: dict[str, Expression] = {}
        for column in self.table.columns:
            if not self.evolves or find_name(column.name, source.columns):
                value = self._same_name(column.name, source, where)
                old = self._old_value(column.name) if is_update else None
                values[column.name] = self._completed(value, (column.name,), old)
            elif not is_update:
                values[column.name] = self._left_out(column, where)
        return values

    def _completed(
        self, value: Expression, path: tuple[str, ...], old: Expression | None
    ) -> Expression:
        """``value`` with the fields that it lacks; ``old``: what the row's column has now."""
        if not self.evolves:
            return value
        wanted = self.stored_types[path[0]]
        for name in path[1:]:
            wanted = cast("StructType", wanted)[name].dataType  # field_path has checked it
            old = None if old is None else replace(old, text=f"{old.text}.{quote(name)}")
        return completed(value, wanted, old)

    def _updated(self, action: UpdateAction, sees: str, where: str) -> dict[str, Expression]:
        tree: dict[str, Assigned] = {}
        for assignment in action.assignments:
            column, fields = self._target_path(assignment.column, where)
            place = ".".join([column.name, *fields])
            if fields and _is_default(assignment.value):
                raise AnalysisError(
                    ErrorCode.EXPRESSION_NOT_ALLOWED,
                    f"{where}: {place} is a field, and only columns have a DEFAULT",
                    "Give the field a value, or NULL.",
                )
            value = self._value(column, assignment.value, sees, f"value of {place} in {where}")
            path = (column.name, *fields)
            value = self._completed(value, path, self._old_value(column.name))
            assign(tree, path, value, where)
        return {
            name: composed(self._old_value(name), value) if isinstance(value, dict) else value
            for name, value in tree.items()
        }

    def _inserted(self, action: InsertAction, sees: str, where: str) -> dict[str, Expression]:
        known = [name for name in self.table.column_names if name not in self.table.added_columns]
        if not action.columns:
            refuse_all_columns(self.table, "an INSERT without columns", where)
        names = action.columns or tuple(map(quote, known))
        if len(names) != len(action.values):
            raise AnalysisError(
                ErrorCode.EXPRESSION_INVALID,
                f"{where}: INSERT has {len(action.values)} values for {len(names)} columns of "
                f"{self.table.name}",
                "Name the columns that get a value.",
            )
        given: dict[str, Expression] = {}
        for text, value in zip(names, action.values, strict=True):
            column, fields = self._target_path(text, where)
            if fields:
                raise AnalysisError(
                    ErrorCode.EXPRESSION_NOT_ALLOWED,
                    f"{where}: {text} is a field, and INSERT takes whole columns",
                    f"Insert {column.name} as a whole, with named_struct(...).",
                )
            if column.name in given:
                raise AnalysisError(
                    ErrorCode.DUPLICATE_ASSIGNMENT,
                    f"{where}: {column.name} is assigned twice",
                    "Give each column one value.",
                )
            place = f"value of {column.name} in {where}"
            found = self._value(column, value, sees, place)
            given[column.name] = self._completed(found, (column.name,), None)
        for column in self.table.opaque_columns:
            self._left_out(column, where)
        return {
            column.name: given.get(column.name) or self._left_out(column, where)
            for column in self.table.columns
        }

    def _left_out(self, column: Column, where: str) -> Expression:
        if column.default is None and not column.nullable:
            raise AnalysisError(
                ErrorCode.COLUMN_NOT_FOUND,
                f"{where}: INSERT leaves out column {column.name}, which is NOT NULL and has no "
                "default",
                "Give the column a value.",
            )
        return self._value(column, "DEFAULT", "target", f"default of {column.name}")

    def _value(self, column: Column, text: str, sees: str, place: str) -> Expression:
        if _is_default(text):
            if column.default is None:
                return NULL
            text = column.default
        if self.source is None:
            expression = self.expressions.analyze_value(text, place)
        else:
            expression = self.expressions.analyze(text, sees, place)
        if not expression.deterministic and column.name in self._deciding:
            raise AnalysisError(
                ErrorCode.EXPRESSION_NOT_ALLOWED,
                f"{place}: {text!r} is nondeterministic, but {column.name} decides where the row "
                "is written",
                "Compute the value in the source, which is evaluated once.",
            )
        return expression

    @property
    def _deciding(self) -> frozenset[str]:
        """The columns whose values decide where a row is written."""
        return frozenset(each.source for each in self.table.partitioned_by)

    def _old_value(self, column: str) -> Expression:
        declared = self.stored_types[column]
        return replace(self.expressions.column_of(self.target, column), type=declared)

    def _same_name(self, name: str, source: Side, where: str) -> Expression:
        refuse_opaque(source.opaque, [name], where)
        matching = [each for each in source.columns if each.lower() == name.lower()]
        if len(matching) == 1:
            return self.expressions.column_of(source, matching[0])
        if matching:
            raise AnalysisError(
                ErrorCode.AMBIGUOUS_REFERENCE,
                f"{where}: the source has {len(matching)} columns {name}",
                "Give each column of the source a name of its own, in any case.",
            )
        raise AnalysisError(
            ErrorCode.COLUMN_NOT_FOUND,
            f"{where}: * needs a source column {name}, but the source has only: "
            f"{', '.join(source.columns)}",
            "Add the column to the source, or assign the columns one by one."
            f"{header_remedy(source.columns)}",
        )

    def _target_path(self, text: str, where: str) -> tuple[Column, tuple[str, ...]]:
        """The column that ``text`` names and the field path; the alias wins over column names."""
        parts = split_name(text)
        qualified = len(parts) > 1 and parts[0].lower() == self.target.alias.lower()
        for names in [parts[1:], parts] if qualified else [parts]:
            column_name = find_name(names[0], self.table.column_names)
            if column_name is not None:
                column = next(each for each in self.table.columns if each.name == column_name)
                fields = field_path(column_name, self.stored_types[column_name], names[1:], where)
                return column, fields
            refuse_opaque(self.target.opaque, names[:1], where)
        raise AnalysisError(
            ErrorCode.COLUMN_NOT_FOUND,
            f"{where}: {text} is not a column of {self.table.name}",
            f"Its columns are: {', '.join(self.table.column_names)}.",
        )


def values_of(action: Action) -> Iterator[str]:
    """The values that ``action`` assigns, as it has them."""
    if isinstance(action, UpdateAction):
        yield from (each.value for each in action.assignments if not _is_default(each.value))
    elif isinstance(action, InsertAction):
        yield from (each for each in action.values if not _is_default(each))


def _is_default(text: str) -> bool:
    return text.strip().upper() == "DEFAULT"
