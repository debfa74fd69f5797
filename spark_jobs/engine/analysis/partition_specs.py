"""Partition specs of a table: constants for the partition columns, and what matches them.

Constants that are Spark SQL expressions are evaluated and stored by Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from spark_jobs.contract.arguments import NO_SESSION
from spark_jobs.contract.inserts import PartitionSpec
from spark_jobs.contract.plain_constants import Constant, is_unclear_day, plain_constant
from spark_jobs.contract.sql_text import quote, unquoted
from spark_jobs.engine.analysis.analyzer import declared_types, target_frame
from spark_jobs.engine.analysis.expression_analyzer import ExpressionAnalyzer
from spark_jobs.engine.analysis.expressions import Expression, Side
from spark_jobs.engine.analysis.partition_values import comparable
from spark_jobs.engine.analysis.statement_time import StatementTime
from spark_jobs.engine.analysis.store_assignment import ErrorLocation, stored
from spark_jobs.engine.runtime.instants import python_columns, python_value
from spark_jobs.engine.runtime.sql_text import embedded, find_name
from spark_jobs.errors import (
    AnalysisError,
    DataError,
    ErrorCode,
    NotSupportedError,
    RequestError,
    excerpt,
)
from spark_jobs.spi import rows
from spark_jobs.spi.tables import TableHandle

Constants = Mapping[str, Constant]
# Characters of a text in an error.
_SHOWN: Final = 100
_TARGET = f"{rows.RESERVED_PREFIX}target"


@dataclass(frozen=True, slots=True)
class PartitionSpecs:
    """Evaluates specs of ``table``; ``others`` evaluates constants that are not plain.

    ``others`` is None if the job has no session.
    """

    table: TableHandle
    others: SparkConstants | None

    def constants(self, spec: PartitionSpec, where: str) -> Constants:
        """The values of ``spec`` by the table's own names; ``where`` names the spec in errors.

        Raises:
            AnalysisError: COLUMN_NOT_FOUND for a name that is not a partition column,
                TYPE_MISMATCH, EXPRESSION_NOT_ALLOWED for a value that is not a constant.
            DataError: VALUE_NOT_STORABLE.
            RequestError: REQUEST_INVALID for a value that needs a session.
        """
        texts = {self._key(name, where): text for name, text in spec.items()}
        declared = {each.name: each.type for each in self.table.partitioned_by}
        for name, text in texts.items():
            _require_whole(f"{where}: {name}", text, declared[name])
        plain = {name: plain_constant(text, declared[name]) for name, text in texts.items()}
        constants = {name: constant for name, constant in plain.items() if constant is not None}
        if len(constants) == len(texts):
            return constants
        if self.others is None:
            name = next(name for name in texts if name not in constants)
            raise RequestError(
                ErrorCode.REQUEST_INVALID,
                f"{where}: {name}: {texts[name]} needs a Spark session",
                f"Start the job without {NO_SESSION}.",
            )
        return self.others.evaluated(texts, where)

    def require_keys(self, names: Sequence[str], where: str) -> None:
        """Check only the names; raises as ``constants``."""
        for name in names:
            self._key(name, where)

    def _key(self, name: str, where: str) -> str:
        keys = [each.name for each in self.table.partitioned_by]
        key = find_name(unquoted(name), keys)
        if key is not None:
            return key
        if not keys:
            problem = f"{self.table.name} has no partitions"
        elif find_name(unquoted(name), self.table.column_names):
            problem = f"{name} is not a partition column of {self.table.name}"
        else:
            problem = f"{name} is not a column of {self.table.name}"
        remedy = f"Its partition columns are: {', '.join(keys)}." if keys else "Leave it out."
        raise AnalysisError(ErrorCode.COLUMN_NOT_FOUND, f"{where}: {problem}", remedy)


def _require_whole(place: str, text: str, declared: str) -> None:
    if is_unclear_day(text, declared):
        raise DataError(
            ErrorCode.VALUE_NOT_STORABLE,
            f"{place}: {excerpt(text, _SHOWN)} is not a {declared.upper()}",
            "Write a whole day, such as 2026-01-31. For a month or a year, list its days.",
        )


def belongs(partition: Mapping[str, Any], spec: Constants) -> bool:
    """Whether a partition, given as values by field, matches a spec.

    Raises:
        NotSupportedError: its value of a field is not known.
    """
    return all(
        comparable(value_of(partition, name)) == comparable(constant.value)
        for name, constant in spec.items()
    )


def value_of(partition: Mapping[str, Any], name: str) -> Any:
    """The value of a partition field.

    Raises:
        NotSupportedError: it is not known.
    """
    if name not in partition:
        raise NotSupportedError(
            f"The table has files whose value of the partition field {name} is not known, because "
            "they are partitioned in an older way, or by values that cannot be compared here.",
            "Rewrite older files by the table's partitions of today, or replace the whole table.",
        )
    return partition[name]


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
