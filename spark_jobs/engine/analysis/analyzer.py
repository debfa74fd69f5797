"""Checks a statement against the schemas: names, types, forbidden expressions, assigned values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType, DataType, StructField, StructType

from spark_jobs.contract.statements import (
    Action,
    DeleteAction,
    DeleteSpec,
    InsertAction,
    InsertAllAction,
    MergeCase,
    MergeSpec,
    UpdateAction,
    UpdateSpec,
)
from spark_jobs.engine.analysis.analyzed import (
    AnalyzedCase,
    AnalyzedMerge,
    filtered_read_set,
    target_read_set,
)
from spark_jobs.engine.analysis.assignments import AssignmentAnalyzer, values_of
from spark_jobs.engine.analysis.char_columns import char_lengths, noted_lengths, without_lengths
from spark_jobs.engine.analysis.expression_analyzer import ExpressionAnalyzer
from spark_jobs.engine.analysis.expressions import Expression, Side
from spark_jobs.engine.analysis.opaque_columns import opaque_fields, opaque_types
from spark_jobs.engine.analysis.store_assignment import frame_type
from spark_jobs.engine.runtime.older_spark import parsed_type
from spark_jobs.errors import AnalysisError, ErrorCode, NotSupportedError
from spark_jobs.spi import rows
from spark_jobs.spi.tables import TableHandle

_SEES: dict[str, str] = {
    "matched": "both",
    "not_matched": "source",
    "not_matched_by_source": "target",
}
_EVERY_ROW = Expression("TRUE", frozenset(), frozenset(), BooleanType(), deterministic=True)


def target_frame(spark: SparkSession, table: TableHandle) -> DataFrame:
    """An empty frame with the table's columns, opaque ones behind the others."""
    fields = [StructField(column.name, frame_type(column.type)) for column in table.columns]
    return spark.createDataFrame([], StructType([*fields, *opaque_fields(table)]))


def target_side(spark: SparkSession, alias: str, table: TableHandle) -> Side:
    """The table as expressions see it."""
    lengths, frame = char_lengths(declared_types(table)), target_frame(spark, table)
    return Side(alias, frame, lengths, table.added_columns, opaque_types(frame.schema))


def source_side(spark: SparkSession, alias: str, schema: StructType) -> Side:
    """The columns of a source as expressions see them."""
    frame = spark.createDataFrame([], without_lengths(schema))
    return Side(alias, frame, noted_lengths(schema), opaque=opaque_types(schema))


def analyze_merge(
    spark: SparkSession, spec: MergeSpec, table: TableHandle, source_schema: StructType
) -> AnalyzedMerge:
    """Check ``spec`` against the schemas of target and source. Reads no data.

    Raises:
        RequestError: SYNTAX_ERROR.
        AnalysisError: the spec does not fit the schemas; the message names clause and column.
    """
    refuse_reserved_names(table.column_names, "target")
    refuse_reserved_names(source_schema.names, "source")
    target = target_side(spark, spec.target_alias, table)
    source = source_side(spark, spec.source_alias, source_schema)
    expressions = ExpressionAnalyzer(spark, target, source)
    types = declared_types(table)
    analysis = _CaseAnalysis(
        spec,
        expressions,
        AssignmentAnalyzer(expressions, table, target, source, types, spec.schema_evolution),
    )
    for sees in ("both", "target", "source"):
        expressions.analyze_together(_texts(spec, sees), sees)
    on = _condition(expressions, spec.on, "both", "ON")
    cases = tuple(analysis.case(number, case) for number, case in enumerate(spec.cases))
    return AnalyzedMerge(
        table=table,
        target_alias=spec.target_alias,
        source_alias=spec.source_alias,
        on=on,
        cases=cases,
        strict=spec.cardinality == "strict",
        target_types=_frame_types(target),
        stored_types=types,
        read_set=target_read_set(expressions, spec),
    )


def analyze_filtered(
    spark: SparkSession, spec: DeleteSpec | UpdateSpec, table: TableHandle
) -> AnalyzedMerge:
    """Check a DELETE or UPDATE against the schemas. Reads no data.

    Subqueries read temporary views.

    Raises:
        RequestError: SYNTAX_ERROR.
        AnalysisError: the spec does not fit the schema; the message names the column.
        CatalogError: TABLE_NOT_FOUND if a subquery reads a table that is not a view.
    """
    refuse_reserved_names(table.column_names, "target")
    target = target_side(spark, spec.target_alias, table)
    expressions = ExpressionAnalyzer(spark, target)
    types = declared_types(table)
    on = _EVERY_ROW
    if spec.where is not None:
        on = _require_deterministic(
            expressions.analyze_where(spec.where),
            "WHERE",
            "Put what is random into a source, which is evaluated once, and read it in a subquery.",
        )
    action: Action = DeleteAction()
    if isinstance(spec, UpdateSpec):
        action = UpdateAction(spec.assignments)
    assignments = AssignmentAnalyzer(expressions, table, target, None, types)
    case = AnalyzedCase(
        number=0,
        label=spec.kind.upper(),
        when="matched",
        condition=None,
        operation=_operation_of(action),
        values=assignments.values(action, "target", spec.kind.upper()),
    )
    return AnalyzedMerge(
        table=table,
        target_alias=spec.target_alias,
        source_alias="",
        on=on,
        cases=(case,),
        strict=False,
        target_types=_frame_types(target),
        stored_types=types,
        read_set=filtered_read_set(on),
    )


def declared_types(table: TableHandle) -> dict[str, DataType]:
    """The declared types of the table's columns, including string lengths."""
    return {column.name: parsed_type(column.type) for column in table.columns}


def _frame_types(target: Side) -> dict[str, DataType]:
    """The types in frames of the target's columns that statements can use."""
    fields = target.frame.schema.fields
    return {each.name: each.dataType for each in fields if each.name not in target.opaque}


def refuse_reserved_names(names: Sequence[str], side: str) -> None:
    """Refuse columns whose names are reserved for the engine.

    Raises:
        NotSupportedError: names the column.
    """
    for name in names:
        if name.lower().startswith(rows.RESERVED_PREFIX):
            raise NotSupportedError(
                f"{side} column {name}: names that start with {rows.RESERVED_PREFIX} are reserved",
                "Rename the column.",
            )


@dataclass(frozen=True, slots=True)
class _CaseAnalysis:
    spec: MergeSpec
    expressions: ExpressionAnalyzer
    assignments: AssignmentAnalyzer

    def case(self, number: int, case: MergeCase) -> AnalyzedCase:
        where = self.spec.place(number)
        sees = _SEES[case.when]
        condition = None
        if case.condition is not None:
            condition = _condition(self.expressions, case.condition, sees, f"condition of {where}")
        return AnalyzedCase(
            number=number,
            label=self.spec.label(number),
            when=case.when,
            condition=condition,
            operation=_operation_of(case.action),
            values=self.assignments.values(case.action, sees, where),
        )


def _texts(spec: MergeSpec, sees: str) -> Iterator[str]:
    """The expressions of a MERGE that see ``both`` sides, the ``target`` or the ``source``."""
    if sees == "both":
        yield spec.on
    for case in spec.cases:
        if _SEES[case.when] != sees:
            continue
        if case.condition is not None:
            yield case.condition
        yield from values_of(case.action)


def _condition(expressions: ExpressionAnalyzer, text: str, sees: str, where: str) -> Expression:
    expression = expressions.analyze_condition(text, sees, where)
    return _require_deterministic(
        expression, where, "Compute the value in the source, which is evaluated once."
    )


def _require_deterministic(expression: Expression, where: str, remedy: str) -> Expression:
    if not expression.deterministic:
        raise AnalysisError(
            ErrorCode.EXPRESSION_NOT_ALLOWED,
            f"{where}: {expression.text!r} is nondeterministic",
            remedy,
        )
    return expression


def _operation_of(action: Action) -> int:
    if isinstance(action, DeleteAction):
        return rows.DELETE
    if isinstance(action, InsertAction | InsertAllAction):
        return rows.INSERT
    return rows.UPDATE
