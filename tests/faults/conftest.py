"""The process that forks drivers; a table with two files; the table of kills at the end."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.drivers import Drivers, running_drivers
from tests.faults.merges import new_table
from tests.judge.glue_server import glue
from tests.judge.iceberg_server import iceberg_rest
from tests.support.stores import moto

__all__ = ["glue", "iceberg_rest", "moto"]


@pytest.fixture(scope="session")
def drivers() -> Iterator[Drivers]:
    with running_drivers() as running:
        yield running


@pytest.fixture(scope="session")
def _seed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    seed = tmp_path_factory.mktemp("seed")
    new_table(seed)
    return seed


@pytest.fixture
def fresh(_seed: Path, tmp_path: Path) -> Iterator[Any]:
    """A function that puts a new copy of the table's warehouse at one and the same path."""
    warehouse = tmp_path / "warehouse"

    def make() -> Path:
        shutil.rmtree(warehouse, ignore_errors=True)
        shutil.copytree(_seed, warehouse)
        return warehouse

    return make
