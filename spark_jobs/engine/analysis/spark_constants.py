"""Constants of partition specs that are Spark SQL expressions, evaluated and stored by Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from spark_jobs.contract.identifiers import quote
from spark_jobs.contract.plain_constants import Constant
from spark_jobs.engine.analysis.analyzer import declared_types, target_frame
from spark_jobs.engine.analysis.expression_analyzer import ExpressionAnalyzer
from spark_jobs.engine.analysis.expressions import Expression, Side
from spark_jobs.engine.analysis.statement_time import StatementTime
from spark_jobs.engine.analysis.store_assignment import ErrorLocation, stored
from spark_jobs.engine.runtime.instants import python_columns, python_value
from spark_jobs.engine.runtime.sql_text import embedded
from spark_jobs.errors import AnalysisError, ErrorCode
from spark_jobs.spi import rows
from spark_jobs.spi.tables import TableHandle

_TARGET = f"{rows.RESERVED_PREFIX}target"


@dataclass(frozen=True)
class SparkConstants:
    """Evaluates constants for columns of ``table`` at ``moment``."""

    spark: SparkSession
    table: TableHandle
    moment: StatementTime

    def evaluated(self, texts: Mapping[str, str], where: str) -> dict[str, Constant]:
        """The values of expressions, by column; ``where`` names their spec in errors.

        Raises:
            AnalysisError: TYPE_MISMATCH, EXPRESSION_NOT_ALLOWED for a value that is not a constant.
            DataError: VALUE_NOT_STORABLE.
        """
        constants = [self._constant(text, f"{where}: {name}") for name, text in texts.items()]
        locations = [ErrorLocation(where, name) for name in texts]
        values = [
            stored(f"c{i}", value.type, self._stored_types[location.path], location)
            for i, (value, location) in enumerate(zip(constants, locations, strict=True))
        ]
        frame = self.spark.range(1)
        frame = frame.selectExpr(
            *(f"{embedded(each.text)} AS c{i}" for i, each in enumerate(constants))
        )
        frame = frame.selectExpr(*(f"{value} AS v{i}" for i, value in enumerate(values)))
        texts_of = [f"CAST(v{i} AS STRING) AS t{i}" for i in range(len(values))]
        kinds = [field.dataType for field in frame.schema]
        frame = frame.select(*python_columns(frame), *map(F.expr, texts_of))
        row = self.moment.fixed(frame).collect()[0]
        python_values = [python_value(row[f"v{i}"], kind) for i, kind in enumerate(kinds)]
        return {name: Constant(python_values[i], row[f"t{i}"]) for i, name in enumerate(texts)}

    @cached_property
    def _expressions(self) -> ExpressionAnalyzer:
        return ExpressionAnalyzer(self.spark, Side(_TARGET, target_frame(self.spark, self.table)))

    @cached_property
    def _stored_types(self) -> Mapping[str, DataType]:
        fields = [each for each in self.table.partitioned_by if each.column is None]
        ddl = ", ".join(f"{quote(each.name)} {each.type}" for each in fields)
        computed = self.spark.createDataFrame([], ddl).schema.fields if fields else []
        own = {each.name: each.column for each in self.table.partitioned_by if each.column}
        types = declared_types(self.table)
        types_of_fields = {name: types[column] for name, column in own.items()}
        return {**types, **types_of_fields, **{each.name: each.dataType for each in computed}}

    def _constant(self, text: str, where: str) -> Expression:
        expression = self._expressions.analyze(text, "target", where)
        if expression.target_columns or not expression.deterministic:
            raise AnalysisError(
                ErrorCode.EXPRESSION_NOT_ALLOWED,
                f"{where}: {text} is not a constant",
                "Write a literal, or select the rows with a source.",
            )
        return expression
