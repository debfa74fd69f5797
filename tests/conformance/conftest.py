from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.conformance.harness import FolderHarness, Harness
from tests.conformance.paimon_harness import PaimonHarness
from tests.conformance.tables import SeedTable
from tests.spark_session import spark

__all__ = ["spark"]

HARNESSES: dict[str, type[Harness]] = {"folder": FolderHarness, "paimon": PaimonHarness}

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
        key = (connector, table.name, partitioned)
        if key not in seeds:
            warehouse = tmp_path_factory.mktemp("seed")
            HARNESSES[connector](spark, warehouse).create(table, ("p",) if partitioned else ())
            seeds[key] = warehouse
        copy = tmp_path / "warehouse"
        shutil.copytree(seeds[key], copy)
        return HARNESSES[connector](spark, copy)

    return make
