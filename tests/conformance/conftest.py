from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.conformance.connectors import HARNESSES, KEYED_HARNESSES, PLANNED_HARNESSES
from tests.conformance.harness import Harness
from tests.conformance.tables import SeedTable

pytest.register_assert_rewrite("tests.conformance.check")

MakeTable = Callable[..., Harness]


@pytest.fixture(scope="session")
def seeds() -> dict[tuple[str, str, bool], Path]:
    """Warehouses whose tables have been filled, by connector, table and partitioning."""
    return {}


@pytest.fixture
def make_table(
    spark: SparkSession,
    seeds: dict[tuple[str, str, bool], Path],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> MakeTable:
    """A function that gives a fresh copy of a filled table."""

    def make(connector: str, table: SeedTable, *, partitioned: bool) -> Harness:
        harness = {**HARNESSES, **KEYED_HARNESSES, **PLANNED_HARNESSES}[connector]
        if not getattr(harness, "func", harness).can_move:
            made = harness(spark, tmp_path, partitioned=partitioned)
            made.create(table)
            return made
        key = (connector, table.name, partitioned)
        if key not in seeds:
            seeds[key] = tmp_path_factory.mktemp("seed")
            harness(spark, seeds[key], partitioned=partitioned).create(table)
        copy = tmp_path / "warehouse"
        shutil.copytree(seeds[key], copy)
        return harness(spark, copy, partitioned=partitioned)

    return make
