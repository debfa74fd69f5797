from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.conformance.connectors import (
    HARNESSES,
    KEYED_HARNESSES,
    PLANNED_HARNESSES,
    TRANSFORMED_HARNESSES,
)
from tests.conformance.harness import Harness
from tests.conformance.tables import SeedTable

pytest.register_assert_rewrite("tests.conformance.check")

MakeTable = Callable[..., Harness]
_ALL_HARNESSES = HARNESSES | KEYED_HARNESSES | PLANNED_HARNESSES | TRANSFORMED_HARNESSES


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
    """A function that gives a fresh copy of a filled table; some are always in the same folder."""

    def make(connector: str, table: SeedTable, *, partitioned: bool) -> Harness:
        harness = _ALL_HARNESSES[connector]
        key = (connector, table.name, partitioned)
        if key not in seeds:
            seeds[key] = tmp_path_factory.mktemp("seed")
            made = seeds[key] / "warehouse"
            made.mkdir()
            harness(spark, made, partitioned=partitioned).create(table)
            made.rename(seeds[key] / "kept")
        can_move = getattr(harness, "func", harness).can_move
        place = (tmp_path if can_move else seeds[key]) / "warehouse"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(seeds[key] / "kept", place)
        return harness(spark, place, partitioned=partitioned)

    return make
