"""What UPDATE and INSERT assign: from names and texts to an expression for each column (rule 7)."""

from __future__ import annotations

from dataclasses import dataclass

from spark_jobs.contract.statements import Action, DeleteAction, InsertAction, UpdateAction
from spark_jobs.engine.expressions import Expression, ExpressionAnalyzer, Side
from spark_jobs.engine.names import find_name
from spark_jobs.errors import AnalysisError, ErrorCode, NotSupportedError
from spark_jobs.spi.tables import Column, TableHandle


@dataclass(frozen=True, slots=True)
class AssignmentAnalyzer:
    """Analyses the actions of one statement; ``source`` is None where it has none."""

    expressions: ExpressionAnalyzer
    table: TableHandle
    target: Side
    source: Side | None

    def values(self, action: Action, sees: str, where: str) -> dict[str, Expression]:
        """The expressions of the columns that ``action`` assigns; empty for DELETE.

        ``sees`` is ``both``, ``target`` or ``source``; ``where`` names the clause in errors.

        Raises:
            RequestError: SYNTAX_ERROR.
            AnalysisError: COLUMN_NOT_FOUND, AMBIGUOUS_REFERENCE, DUPLICATE_ASSIGNMENT,
                EXPRESSION_NOT_ALLOWED, EXPRESSION_INVALID.
        """
        if isinstance(action, DeleteAction):
            return {}
        if isinstance(action, UpdateAction):
            pairs = [(each.column, each.value) for each in action.assignments]
            return self._assigned(pairs, sees, where)
        if isinstance(action, InsertAction):
            return self._inserted(action, sees, where)
        if self.source is None:
            raise ValueError("* needs a source")
        return {name: self._same_name(name, self.source, where) for name in self.table.column_names}

    def _assigned(
        self, pairs: list[tuple[str, str]], sees: str, where: str
    ) -> dict[str, Expression]:
        values: dict[str, Expression] = {}
        for text, value in pairs:
            column = self._target_column(text, where)
            if column.name in values:
                raise AnalysisError(
                    ErrorCode.DUPLICATE_ASSIGNMENT, f"{where}: {column.name} is assigned twice"
                )
            values[column.name] = self._value(column, value, sees, where)
        return values

    def _inserted(self, action: InsertAction, sees: str, where: str) -> dict[str, Expression]:
        names = action.columns or self.table.column_names
        if len(names) != len(action.values):
            raise AnalysisError(
                ErrorCode.EXPRESSION_INVALID,
                f"{where}: INSERT has {len(action.values)} values for {len(names)} columns of "
                f"{self.table.name}",
                "Name the columns that get a value.",
            )
        values = self._assigned(list(zip(names, action.values, strict=True)), sees, where)
        return {
            column.name: values.get(column.name)
            or self._value(column, column.default or "NULL", sees, where)
            for column in self.table.columns
        }

    def _value(self, column: Column, text: str, sees: str, where: str) -> Expression:
        if text.strip().upper() == "DEFAULT":
            text = column.default or "NULL"
        place = f"value of {column.name} in {where}"
        expression = self.expressions.analyze(text, sees, place)
        if not expression.deterministic and column.name in self.table.partition_keys:
            raise AnalysisError(
                ErrorCode.EXPRESSION_NOT_ALLOWED,
                f"{place}: {text!r} is nondeterministic, but {column.name} decides where the row "
                "is written",
                "Compute the value in the source, which is evaluated once.",
            )
        return expression

    def _same_name(self, name: str, source: Side, where: str) -> Expression:
        found = [each for each in source.columns if each.lower() == name.lower()]
        if len(found) == 1:
            return self.expressions.column_of(source, found[0])
        if found:
            raise AnalysisError(
                ErrorCode.AMBIGUOUS_REFERENCE,
                f"{where}: the source has {len(found)} columns {name}",
            )
        raise AnalysisError(
            ErrorCode.COLUMN_NOT_FOUND,
            f"{where}: * needs a source column {name}, but the source has only: "
            f"{', '.join(source.columns)}",
            "Add the column to the source, or assign the columns one by one.",
        )

    def _target_column(self, text: str, where: str) -> Column:
        parts = split_name(text)
        if len(parts) > 1 and parts[0].lower() == self.target.alias.lower():
            parts = parts[1:]
        name = find_name(parts[0], self.table.column_names)
        if name is None:
            raise AnalysisError(
                ErrorCode.COLUMN_NOT_FOUND,
                f"{where}: {text} is no column of {self.table.name}",
                f"Its columns are: {', '.join(self.table.column_names)}.",
            )
        if len(parts) > 1:
            raise NotSupportedError(
                f"{where}: {text} is a nested field, which can not be assigned yet",
                f"Assign the whole column {name} with named_struct(…).",
            )
        return next(column for column in self.table.columns if column.name == name)


def split_name(text: str) -> list[str]:
    """The parts of a dotted name; backticks keep a dot inside a part."""
    parts, current, quoted = [], "", False
    for character in text.strip():
        if character == "`":
            quoted = not quoted
        elif character == "." and not quoted:
            parts.append(current.strip())
            current = ""
        else:
            current += character
    return [*parts, current.strip()]
