"""Statements under settings of Spark's own registry: rows, types and errors are those without."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.spark_settings import decides_meaning
from spark_jobs.engine.runtime.java_names import java_class
from spark_jobs.engine.runtime.session import fixed_meaning, fixed_settings, meaningful_settings
from tests.settings.outcomes import changed, in_effect, outcomes, outcomes_under
from tests.settings.registry import Trial, names_of, session_with, trials
from tests.settings.statements import statements
from tests.support.turns import has_turn

pytestmark = pytest.mark.slow

# `python -m tests.settings` runs all of them.
_PARTS = 240


def test_no_setting_changes_an_outcome(spark: SparkSession) -> None:
    with fixed_meaning(spark, "UTC"):
        expected = outcomes(spark, statements(jobs=True))
    wrong: dict[Trial, object] = {}
    for number, (name, default) in enumerate(names_of(spark).items()):
        if not has_turn(number, _PARTS):
            continue
        texts = statements(jobs=not decides_meaning(name))
        for trial in trials(spark, name, default):
            found = outcomes_under(spark, trial, texts, lambda own: fixed_meaning(own, "UTC"))
            differing = changed(found, expected)
            if differing:
                wrong[trial] = differing

    assert not wrong


def test_nothing_that_decides_is_in_effect(spark: SparkSession) -> None:
    own = spark.newSession()
    with fixed_meaning(own, "UTC"):
        expected = in_effect(own)
    wrong = []
    for number, (name, default) in enumerate(names_of(spark).items()):
        if not decides_meaning(name) or not has_turn(number, 20):
            continue
        for trial in trials(spark, name, default)[:1]:
            with session_with(spark, trial) as session, fixed_meaning(session, "UTC"):
                if in_effect(session) != expected:
                    wrong.append(trial)

    assert not wrong


def test_without_isolation_the_same_statements_find_a_setting(spark: SparkSession) -> None:
    trial = Trial("spark.sql.legacy.negativeIndexInArrayInsert", "true")
    pinned = meaningful_settings("UTC")
    texts = statements(jobs=False)
    with fixed_settings(spark, pinned):
        expected = outcomes(spark, texts)
    found = outcomes_under(spark, trial, texts, lambda own: fixed_settings(own, pinned))

    assert changed(found, expected).keys() == {"nested"}


LOCALES = ("az", "fa-IR-u-nu-arabext", "lt", "tr-TR")


@pytest.mark.parametrize("tag", LOCALES)
def test_java_s_locale_changes_no_outcome(spark: SparkSession, tag: str) -> None:
    texts = {"strings": statements(jobs=False)["strings"], "times": statements(jobs=False)["times"]}
    with fixed_meaning(spark, "UTC"):
        expected = outcomes(spark, texts)
    locales = java_class(spark, "java.util.Locale")
    locales.setDefault(locales.forLanguageTag(tag))
    with fixed_settings(spark, meaningful_settings("UTC")):
        without = outcomes(spark, texts)
    with fixed_meaning(spark, "UTC"):
        found = outcomes(spark, texts)

    assert found == expected
    assert without != expected


def test_java_s_time_zone_changes_no_outcome(spark: SparkSession) -> None:
    texts = statements(jobs=True)
    zones = java_class(spark, "java.util.TimeZone")
    before = zones.getDefault()
    with fixed_meaning(spark, "UTC"):
        expected = outcomes(spark, texts)
        zones.setDefault(zones.getTimeZone("Asia/Kathmandu"))
        try:
            found = outcomes(spark, texts)
        finally:
            zones.setDefault(before)

    assert not changed(found, expected)
