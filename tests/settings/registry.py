"""Every setting of Spark SQL that this version of Spark registers, with values that are tried."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from spark_jobs.engine.runtime.java_names import scala_object

_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?")
_SIZE: Final = re.compile(r"-?\d+(b|ms|[kmgt]b?)", re.IGNORECASE)
_EDGES: Final = ("-1", "0", "1", "2", "1000000")
# For settings without a default, and for texts.
_ANYTHING: Final = ("true", "1", "x")
# What a text must be is known only from the error of one that it is not.
_CHOICES: Final = re.compile(r"one of:? (.*)", re.DOTALL)
_CHOICE: Final = re.compile(r"\w+")
_WRONG: Final = "no such value"
# Texts that mean something; a listener that does not exist only keeps the session from starting.
_OTHER_TEXTS: Final = {
    "spark.sql.legacy.timeParserPolicy": ("LEGACY", "EXCEPTION"),
    "spark.sql.optimizer.excludedRules": (
        "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation",
        "org.apache.spark.sql.catalyst.optimizer.ConstantFolding",
    ),
    "spark.sql.queryExecutionListeners": (),
    "spark.sql.session.timeZone": ("Asia/Kathmandu",),
    "spark.sql.sources.useV1SourceList": ("",),
}


@dataclass(frozen=True, slots=True)
class Trial:
    """A setting with a value other than its default."""

    name: str
    value: str

    def __str__(self) -> str:
        return f"{self.name}={self.value}"


def names_of(spark: SparkSession) -> dict[str, str]:
    """The names of all registered settings, public or internal, with the texts of defaults."""
    entries = scala_object(spark, "org.apache.spark.sql.internal.SQLConf").getConfigEntries()
    found = {each.key(): each.defaultValueString() for each in entries.toArray()}
    return dict(sorted(found.items()))


def trials(spark: SparkSession, name: str, default: str) -> list[Trial]:
    """The values of a setting to try: those that Spark takes, without the default."""
    values = _values(spark, name, default)
    return [Trial(name, each) for each in values if each != default and _takes(spark, name, each)]


def _values(spark: SparkSession, name: str, default: str) -> tuple[str, ...]:
    if name in _OTHER_TEXTS:
        return _OTHER_TEXTS[name]
    if default in ("true", "false"):
        return ("false", "true")
    if _NUMBER.fullmatch(default):
        return _EDGES
    if _SIZE.fullmatch(default):
        return ("-1", "1", "1000000")
    choices = _CHOICES.search(_problem(spark, name, _WRONG))
    return tuple(_CHOICE.findall(choices[1])) if choices else _ANYTHING


def _takes(spark: SparkSession, name: str, value: str) -> bool:
    return not _problem(spark, name, value)


def _problem(spark: SparkSession, name: str, value: str) -> str:
    """What Spark says against a value; empty if it takes it."""
    conf = spark._jsparkSession.sessionState().conf().clone()
    try:
        conf.setConfString(name, value)
    except (Py4JError, Exception) as error:  # noqa: BLE001 - PySpark's classes of it are many
        return str(error) or "refused"
    return ""


@contextmanager
def session_with(spark: SparkSession, trial: Trial) -> Iterator[SparkSession]:
    """A new session of the application of ``spark`` as if the setting came by SparkConf."""
    conf: Any = spark.sparkContext._jsc.sc().conf()
    before = conf.get(trial.name, None)
    conf.set(trial.name, trial.value)
    try:
        session = spark.newSession()
        session._jsparkSession.sessionState()  # reads the settings of the application
    finally:
        if before is None:
            conf.remove(trial.name)
        else:
            conf.set(trial.name, before)
    try:
        yield session
    finally:
        # Spark's thread keeps the last session that was used as the active one.
        spark._jsparkSession.setActiveSession(spark._jsparkSession)
