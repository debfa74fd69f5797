"""One moment for a statement: ``current_date()`` and the like have one value in all its parts.

Spark computes them once per query (its rule ``ComputeCurrentTime``). A statement runs several
queries: sources, file pruning, the join, and all of them again after a conflict.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_jobs.engine.runtime.java_names import java_class, scala_object
from spark_jobs.engine.runtime.older_spark import frame_of_plan

_FUNCTIONS = ("current_date()", "current_timestamp()", "now()", "localtimestamp()")
# Spark 4.1 and later: a value for each precision.
_TIME_OF_DAY = "current_time"
_PRECISIONS = range(7)
# Its member CURRENT_LIKE is what the rule looks for, in subqueries too.
_PATTERNS = "org.apache.spark.sql.catalyst.trees.TreePattern"
_CURRENT_TIME_RULE = "org.apache.spark.sql.catalyst.optimizer.ComputeCurrentTime"


@dataclass(frozen=True)
class StatementTime:
    """The moment when a statement first asked for the time."""

    spark: SparkSession

    @cached_property
    def literals(self) -> Any:
        """A map from Spark's current-time expressions to values in the session's time zone."""
        spark = self.spark
        functions = list(_FUNCTIONS)
        if spark.catalog.functionExists(_TIME_OF_DAY):
            functions += [f"{_TIME_OF_DAY}({precision})" for precision in _PRECISIONS]
        plan = _analyzed(spark.sql(f"SELECT {', '.join(functions)}"))
        computed = scala_object(spark, _CURRENT_TIME_RULE).apply(plan)
        literals = java_class(spark, "java.util.HashMap")()
        for index in range(len(functions)):
            function, literal = (each.projectList().apply(index) for each in (plan, computed))
            literals.put(function.child(), literal.child())
        utilities = java_class(spark, "org.apache.spark.api.python.PythonUtils")
        return utilities.toScalaMap(literals)

    def fixed(self, frame: DataFrame) -> DataFrame:
        """``frame`` as of this moment, including the views and subqueries that it reads."""
        plan = _analyzed(frame)
        if not plan.containsPattern(java_class(self.spark, _PATTERNS).CURRENT_LIKE()):
            return frame
        fixed = plan.transformAllExpressionsWithSubqueries(self.literals)
        return frame if fixed.equals(plan) else frame_of_plan(self.spark, fixed)


def _analyzed(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().analyzed()
