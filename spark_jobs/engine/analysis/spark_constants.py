"""Constants of partition specs that are Spark SQL expressions, evaluated and stored by Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from spark_jobs.contract.plain_constants import Constant
from spark_jobs.engine.analysis.analyzer import declared_types, target_frame
from spark_jobs.engine.analysis.expression_analyzer import ExpressionAnalyzer
from spark_jobs.engine.analysis.expressions import Expression, Side
from spark_jobs.engine.analysis.statement_time import StatementTime
from spark_jobs.engine.analysis.store_assignment import ErrorLocation, stored
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
        columns = [
            self._value(name, text, f"{where}: {name}", ErrorLocation(where, name)).alias(f"v{i}")
            for i, (name, text) in enumerate(texts.items())
        ]
        as_text = [F.col(f"v{i}").cast("string").alias(f"t{i}") for i in range(len(columns))]
        frame = self.spark.range(1).select(*columns).select("*", *as_text)
        row = self.moment.fixed(frame).collect()[0]
        return {name: Constant(row[f"v{i}"], row[f"t{i}"]) for i, name in enumerate(texts)}

    @cached_property
    def _expressions(self) -> ExpressionAnalyzer:
        return ExpressionAnalyzer(self.spark, Side(_TARGET, target_frame(self.spark, self.table)))

    @cached_property
    def _stored_types(self) -> Mapping[str, DataType]:
        return declared_types(self.table)

    def _value(self, name: str, text: str, where: str, location: ErrorLocation) -> Column:
        expression = self._constant(text, where)
        return stored(expression.column, expression.type, self._stored_types[name], location)

    def _constant(self, text: str, where: str) -> Expression:
        expression = self._expressions.analyze(text, "target", where)
        if expression.target_columns or not expression.deterministic:
            raise AnalysisError(
                ErrorCode.EXPRESSION_NOT_ALLOWED,
                f"{where}: {text} is not a constant",
                "Write a literal, or select the rows with a source.",
            )
        return expression
