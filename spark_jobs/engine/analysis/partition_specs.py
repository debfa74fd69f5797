"""Partition specs of a table: constants for the partition columns, and what matches them.

Partition values are compared as Python values: connectors do not partition by types for which this
differs from Spark's equality.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from spark_jobs.contract.identifiers import unquoted
from spark_jobs.contract.inserts import PartitionSpec
from spark_jobs.engine.analysis.expression_analyzer import ExpressionAnalyzer
from spark_jobs.engine.analysis.expressions import Expression
from spark_jobs.engine.analysis.statement_time import StatementTime
from spark_jobs.engine.analysis.store_assignment import ErrorLocation, stored
from spark_jobs.engine.runtime.names import find_name
from spark_jobs.errors import AnalysisError, ErrorCode
from spark_jobs.spi.tables import PlannedFile, TableHandle


@dataclass(frozen=True, slots=True)
class Constant:
    """A spec's value for a column; ``text`` is that value as Spark casts it to STRING."""

    value: Any
    text: str | None

    def as_sql(self, declared: str) -> str:
        """The value as a Spark SQL expression of type ``declared``."""
        if self.text is None:
            return f"CAST(NULL AS {declared})"
        escaped = self.text.replace("\\", "\\\\").replace("'", "\\'")
        return f"CAST('{escaped}' AS {declared})"


Constants = Mapping[str, Constant]


@dataclass(frozen=True, slots=True)
class PartitionSpecs:
    """Evaluates specs of ``table``; ``stored_types`` are the declared types of its columns."""

    spark: SparkSession
    table: TableHandle
    expressions: ExpressionAnalyzer
    stored_types: Mapping[str, DataType]
    moment: StatementTime

    def constants(self, spec: PartitionSpec, where: str) -> dict[str, Constant]:
        """The values of ``spec`` by the table's column names; ``where`` names the spec in errors.

        Raises:
            AnalysisError: COLUMN_NOT_FOUND for a name that is not a partition column,
                TYPE_MISMATCH, EXPRESSION_NOT_ALLOWED for a value that is not a constant.
            DataError: VALUE_NOT_STORABLE.
        """
        values = {self._key(name, where): text for name, text in spec.items()}
        if not values:
            return {}
        columns = [
            self._value(name, text, f"{where}: {name}", ErrorLocation(where, name)).alias(f"v{i}")
            for i, (name, text) in enumerate(values.items())
        ]
        texts = [F.col(f"v{i}").cast("string").alias(f"t{i}") for i in range(len(columns))]
        frame = self.spark.range(1).select(*columns).select("*", *texts)
        row = self.moment.fixed(frame).collect()[0]
        return {name: Constant(row[f"v{i}"], row[f"t{i}"]) for i, name in enumerate(values)}

    def require_keys(self, names: Sequence[str], where: str) -> None:
        """Check only the names; raises as ``constants``."""
        for name in names:
            self._key(name, where)

    def _key(self, name: str, where: str) -> str:
        keys = self.table.partition_keys
        found = find_name(unquoted(name), keys)
        if found is not None:
            return found
        if not keys:
            problem = f"{self.table.name} has no partitions"
        elif find_name(unquoted(name), self.table.column_names):
            problem = f"{name} is not a partition column of {self.table.name}"
        else:
            problem = f"{name} is not a column of {self.table.name}"
        remedy = f"Its partition columns are: {', '.join(keys)}." if keys else "Leave it out."
        raise AnalysisError(ErrorCode.COLUMN_NOT_FOUND, f"{where}: {problem}", remedy)

    def _value(self, name: str, text: str, where: str, location: ErrorLocation) -> Column:
        expression = self._constant(text, where)
        return stored(expression.column, expression.type, self.stored_types[name], location)

    def _constant(self, text: str, where: str) -> Expression:
        expression = self.expressions.analyze(text, "target", where)
        if expression.target_columns or not expression.deterministic:
            raise AnalysisError(
                ErrorCode.EXPRESSION_NOT_ALLOWED,
                f"{where}: {text} is not a constant",
                "Write a literal, or select the rows with a source.",
            )
        return expression


def belongs(partition: Mapping[str, Any], spec: Constants) -> bool:
    """Whether a partition, given as values by column, matches a spec."""
    return all(partition[name] == constant.value for name, constant in spec.items())


def files_of(files: Sequence[PlannedFile], spec: Constants) -> list[PlannedFile]:
    """The files of the partitions that match a spec."""
    return [file for file in files if belongs(file.partition, spec)]
