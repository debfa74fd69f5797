"""The rows are the same whatever Spark's settings and the size limits are."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from spark_jobs.engine.merge.physical_plan import PlanLimits
from spark_jobs.engine.runtime.session import fixed_settings, meaningful_settings
from tests.conformance.behaviours import BEHAVIOURS
from tests.conformance.check import check
from tests.conformance.harness import Harness

_SETTINGS: dict[str, Mapping[str, str]] = {
    "batches of one row": {"spark.sql.execution.arrow.maxRecordsPerBatch": "1"},
    "batches of three rows": {"spark.sql.execution.arrow.maxRecordsPerBatch": "3"},
    "not adaptive, one partition": {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
    },
    "many partitions, no broadcast": {
        "spark.sql.shuffle.partitions": "11",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    },
    "a careless cluster": {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.caseSensitive": "true",
        "spark.sql.storeAssignmentPolicy": "LEGACY",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.session.timeZone": "Asia/Kathmandu",
        "spark.sql.files.ignoreCorruptFiles": "true",
    },
}
_CHOSEN = (
    "all kinds of clauses together",
    "two source rows that update one target row are an error with keys and clauses",
    "strict: two matches that no clause takes are an error too",
    "a sole unconditional DELETE takes repeated matches, and counts the row once",
)
_CARELESS = (
    "names and aliases in any case",
    "an expression that fails is an error",
    "values are cast to the column's type",
    "values of every type are inserted and updated",
)
_BY_NAME = {behaviour.name: behaviour for behaviour in BEHAVIOURS}


@pytest.mark.by_turns(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        *((name, settings) for settings in list(_SETTINGS)[:-1] for name in _CHOSEN),
        *((name, "a careless cluster") for name in _CARELESS),
    ],
)
def test_spark_settings_change_nothing(
    name: str, settings: str, make_table: Callable[..., Harness]
) -> None:
    behaviour = _BY_NAME[name]
    harness = make_table("folder", behaviour.table, partitioned=True)

    with fixed_settings(harness.spark, _SETTINGS[settings]):
        check(behaviour, harness, PlanLimits(0 if "no broadcast" in settings else 10**6))


@pytest.mark.slow
@pytest.mark.parametrize("name", _CHOSEN)
def test_no_broadcast_changes_nothing(name: str, make_table: Callable[..., Harness]) -> None:
    behaviour = _BY_NAME[name]
    harness = make_table("folder", behaviour.table, partitioned=False)

    check(behaviour, harness, PlanLimits(broadcast=0))


def test_a_session_gets_its_own_settings_back(make_table: Callable[..., Harness]) -> None:
    behaviour = _BY_NAME["a column that is assigned twice"]
    harness = make_table("folder", behaviour.table, partitioned=True)
    settings = meaningful_settings("Europe/Berlin")
    before = {key: harness.spark.conf.get(key, None) for key in settings}

    check(behaviour, harness, session_time_zone="Europe/Berlin")

    assert {key: harness.spark.conf.get(key, None) for key in settings} == before
