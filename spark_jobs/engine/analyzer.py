"""MERGE against the schemas: names, types, forbidden expressions, what each clause assigns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructField, StructType

from spark_jobs.contract.statements import (
    Action,
    DeleteAction,
    InsertAction,
    InsertAllAction,
    MergeCase,
    MergeSpec,
    UpdateAction,
    When,
)
from spark_jobs.engine.expressions import Expression, ExpressionAnalyzer, Side
from spark_jobs.engine.names import find_name
from spark_jobs.engine.region import TargetRegion, target_region
from spark_jobs.engine.store_assignment import frame_type
from spark_jobs.errors import AnalysisError, ErrorCode, NotSupportedError
from spark_jobs.spi import rows
from spark_jobs.spi.tables import Column, TableHandle

_SEES: dict[str, str] = {
    "matched": "both",
    "not_matched": "source",
    "not_matched_by_source": "target",
}
_TEXT: dict[str, str] = {
    "matched": "WHEN MATCHED",
    "not_matched": "WHEN NOT MATCHED",
    "not_matched_by_source": "WHEN NOT MATCHED BY SOURCE",
}


@dataclass(frozen=True, slots=True)
class AnalyzedCase:
    """One WHEN clause; ``number`` counts from 0, ``values`` has the assigned columns."""

    number: int
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
    """A MERGE whose names and types are known to fit.

    ``target_types`` are Spark's types of the target's columns, CHAR and VARCHAR as STRING;
    ``region`` tells which target rows the statement can touch.
    """

    table: TableHandle
    target_alias: str
    source_alias: str
    on: Expression
    cases: tuple[AnalyzedCase, ...]
    strict: bool
    target_types: Mapping[str, DataType]
    region: TargetRegion

    def has(self, when: When) -> bool:
        """Whether there is a clause of this kind."""
        return any(case.when == when for case in self.cases)

    @property
    def allows_repeated_matches(self) -> bool:
        """True for a sole, unconditional DELETE among the MATCHED clauses (rule 2)."""
        matched = [case for case in self.cases if case.when == "matched"]
        return (
            len(matched) == 1
            and matched[0].operation == rows.DELETE
            and matched[0].condition is None
        )

    @property
    def source_columns(self) -> frozenset[str]:
        """Source columns that any part of the statement reads."""
        return self.on.source_columns.union(
            *(each.source_columns for case in self.cases for each in case.expressions)
        )

    @property
    def target_columns(self) -> frozenset[str]:
        """Target columns that any part of the statement reads."""
        return self.on.target_columns.union(
            *(each.target_columns for case in self.cases for each in case.expressions)
        )


def target_frame(spark: SparkSession, table: TableHandle) -> DataFrame:
    """An empty frame with the table's columns."""
    fields = [StructField(column.name, frame_type(column.type)) for column in table.columns]
    return spark.createDataFrame([], StructType(fields))


def analyze_merge(
    spark: SparkSession, spec: MergeSpec, table: TableHandle, source_schema: StructType
) -> AnalyzedMerge:
    """Check ``spec`` against the schemas of target and source. Reads no data.

    Raises:
        RequestError: SYNTAX_ERROR.
        AnalysisError: whatever does not fit; the message names the clause and the column.
        NotSupportedError: schema evolution, assignment of a nested field.
    """
    if spec.schema_evolution:
        raise NotSupportedError("schema_evolution: MERGE can not add columns yet")
    _refuse_reserved_names(table.column_names, "target")
    _refuse_reserved_names(source_schema.names, "source")
    target = Side(spec.target_alias, target_frame(spark, table))
    source = Side(spec.source_alias, spark.createDataFrame([], source_schema))
    expressions = ExpressionAnalyzer(spark, target, source)
    analysis = _MergeAnalysis(expressions, table, target, source)
    on = analysis.condition(spec.on, "both", "ON")
    cases = tuple(analysis.case(number, case) for number, case in enumerate(spec.cases))
    return AnalyzedMerge(
        table=table,
        target_alias=spec.target_alias,
        source_alias=spec.source_alias,
        on=on,
        cases=cases,
        strict=spec.cardinality == "strict",
        target_types={field.name: field.dataType for field in target.frame.schema},
        region=target_region(expressions, spec),
    )


def _refuse_reserved_names(names: Sequence[str], side: str) -> None:
    for name in names:
        if name.lower().startswith(rows.RESERVED_PREFIX):
            raise NotSupportedError(
                f"{side} column {name}: names that start with {rows.RESERVED_PREFIX} are reserved"
            )


@dataclass(frozen=True, slots=True)
class _MergeAnalysis:
    expressions: ExpressionAnalyzer
    table: TableHandle
    target: Side
    source: Side

    def condition(self, text: str, sees: str, where: str) -> Expression:
        expression = self.expressions.analyze(text, sees, where)
        if expression.type.simpleString() not in ("boolean", "void"):
            raise AnalysisError(
                ErrorCode.TYPE_MISMATCH,
                f"{where}: {text!r} is {expression.type.simpleString()}, not boolean",
            )
        if not expression.deterministic:
            raise AnalysisError(
                ErrorCode.EXPRESSION_NOT_ALLOWED,
                f"{where}: {text!r} is nondeterministic",
                "Compute the value in the source, which is evaluated once.",
            )
        return expression

    def case(self, number: int, case: MergeCase) -> AnalyzedCase:
        where = f"clause {number + 1} ({_TEXT[case.when]})"
        condition = None
        if case.condition is not None:
            condition = self.condition(case.condition, _SEES[case.when], f"condition of {where}")
        return AnalyzedCase(
            number=number,
            when=case.when,
            condition=condition,
            operation=_operation_of(case.action),
            values=self._values(case.action, _SEES[case.when], where),
        )

    def _values(self, action: Action, sees: str, where: str) -> dict[str, Expression]:
        if isinstance(action, DeleteAction):
            return {}
        if isinstance(action, UpdateAction):
            pairs = [(each.column, each.value) for each in action.assignments]
            return self._assigned(pairs, sees, where)
        if isinstance(action, InsertAction):
            return self._inserted(action, sees, where)
        return {name: self._same_name(name, where) for name in self.table.column_names}

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

    def _same_name(self, name: str, where: str) -> Expression:
        found = [each for each in self.source.columns if each.lower() == name.lower()]
        if len(found) == 1:
            return self.expressions.column_of(self.source, found[0])
        if found:
            raise AnalysisError(
                ErrorCode.AMBIGUOUS_REFERENCE,
                f"{where}: the source has {len(found)} columns {name}",
            )
        raise AnalysisError(
            ErrorCode.COLUMN_NOT_FOUND,
            f"{where}: * needs a source column {name}, but the source has only: "
            f"{', '.join(self.source.columns)}",
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


def _operation_of(action: Action) -> int:
    if isinstance(action, DeleteAction):
        return rows.DELETE
    if isinstance(action, InsertAction | InsertAllAction):
        return rows.INSERT
    return rows.UPDATE
