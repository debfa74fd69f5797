"""Data files whose names Spark spells in another way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.connectors.paimon.read.scan import Reader
from spark_jobs.engine.merge.plan_limits import PlanLimits
from tests.conformance.behaviours import BEHAVIOURS
from tests.conformance.check import check
from tests.conformance.paimon_harness import PaimonHarness
from tests.conformance.tables import SeedTable
from tests.support.table_kinds import APPEND_DV

SPELLED_OTHERWISE = "a %b-"
# Files of these names Spark takes for metadata, or cannot open.
NOT_FOR_SPARK = ("_a-", "a:b-")


class _PrefixedHarness(PaimonHarness):
    prefix = SPELLED_OTHERWISE

    def options(self, table: SeedTable) -> Mapping[str, str]:
        return {**super().options(table), "data-file.prefix": self.prefix}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reader", "limits", "prefix"),
    [
        ("spark", PlanLimits(), SPELLED_OTHERWISE),
        ("pyarrow", PlanLimits(filter_share=1000.0), SPELLED_OTHERWISE),
        *(("spark", PlanLimits(), prefix) for prefix in NOT_FOR_SPARK),
    ],
)
def test_a_merge_finds_the_rows_of_files_of_any_name(
    spark: SparkSession, tmp_path: Path, reader: Reader, limits: PlanLimits, prefix: str
) -> None:
    (behaviour,) = (each for each in BEHAVIOURS if each.name == "all kinds of clauses together")
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    harness = _PrefixedHarness(spark, warehouse, partitioned=True, kind=APPEND_DV, reader=reader)
    harness.prefix = prefix
    harness.create(behaviour.table)

    check(behaviour, harness, limits)

    assert {path.name[: len(prefix)] for path in harness.live_files()} == {prefix}
