"""What statements give: rows and types, or the name of an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_jobs.engine.runtime.java_names import mapping
from spark_jobs.engine.runtime.older_spark import error_condition
from tests.settings.registry import Trial, session_with

_SHOWN: Final = 120
Outcomes = Mapping[str, str]
# How a job isolates its session from what the cluster sets.
Isolation = Callable[[SparkSession], AbstractContextManager[object]]


def outcomes(spark: SparkSession, statements: Mapping[str, str]) -> Outcomes:
    """The outcome of each statement as a text, by the names of the statements."""
    return {name: _outcome(spark, text) for name, text in statements.items()}


def in_effect(spark: SparkSession) -> str:
    """All settings of a session that are not Spark's defaults, as a text."""
    settings = mapping(spark, spark._jsparkSession.sessionState().conf().settings())
    return str(sorted(settings.items()))


def _outcome(spark: SparkSession, text: str) -> str:
    try:
        frame = spark.sql(text)
        rows = list(map(str, frame.collect()))
        in_order = rows if "ORDER BY" in text.upper() else sorted(rows)
        return f"{frame.schema.simpleString()} {in_order}"
    except (Py4JError, PySparkException) as error:
        lines = [line for line in str(error).splitlines() if "[" in line]
        condition = error_condition(error) if isinstance(error, PySparkException) else ""
        return condition or lines[0][:_SHOWN] if lines else type(error).__name__


def outcomes_under(
    spark: SparkSession, trial: Trial, statements: Mapping[str, str], isolation: Isolation
) -> Outcomes:
    """The outcomes where an application was started with the setting."""
    with session_with(spark, trial) as session, isolation(session):
        return outcomes(session, statements)


def changed(found: Outcomes, expected: Outcomes) -> dict[str, tuple[str, str]]:
    """What differs: the outcome that is expected, and the one that was found."""
    return {name: (expected[name], found[name]) for name in found if found[name] != expected[name]}
