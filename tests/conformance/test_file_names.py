"""Data files whose names Spark spells in another way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.connectors.paimon.read.scan import Reader
from spark_jobs.engine.merge.physical_plan import PlanLimits
from tests.conformance.behaviours import BEHAVIOURS
from tests.conformance.check import check
from tests.conformance.paimon_harness import PaimonHarness
from tests.conformance.tables import SeedTable
from tests.support.table_kinds import APPEND_DV

PREFIX = "a %b-"


class _PrefixedHarness(PaimonHarness):
    def options(self, table: SeedTable) -> Mapping[str, str]:
        return {**super().options(table), "data-file.prefix": PREFIX}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reader", "limits"),
    [("spark", PlanLimits()), ("pyarrow", PlanLimits(filter_share=1000.0))],
)
def test_a_merge_finds_the_rows_of_files_of_any_name(
    spark: SparkSession, tmp_path: Path, reader: Reader, limits: PlanLimits
) -> None:
    (behaviour,) = (each for each in BEHAVIOURS if each.name == "all kinds of clauses together")
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    harness = _PrefixedHarness(spark, warehouse, partitioned=True, kind=APPEND_DV, reader=reader)
    harness.create(behaviour.table)

    check(behaviour, harness, limits)

    assert {path.name[: len(PREFIX)] for path in harness.live_files()} == {PREFIX}
