"""What checks see of random statements are the changes that the oracle says, under every plan."""

from __future__ import annotations

import pytest

from tests.property.paimon_tables import Warehouse
from tests.property.runner import Runner
from tests.support.table_kinds import ICEBERG

_SEEDS = range(70_000, 70_030)
_ICEBERG_SEEDS = range(71_000, 71_020)


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory) -> Warehouse:
    folder = tmp_path_factory.mktemp("changes") / "warehouse"
    folder.mkdir()
    return Warehouse(folder)


@pytest.mark.slow
@pytest.mark.by_turns(15)
@pytest.mark.parametrize("seed", _SEEDS)
def test_changes_are_the_oracles(seed: int, spark, warehouse: Warehouse) -> None:
    Runner(spark, warehouse, checks=True).run_seed(seed)


@pytest.mark.slow
@pytest.mark.by_turns(20)
@pytest.mark.parametrize("seed", _ICEBERG_SEEDS)
def test_changes_of_iceberg_tables_are_the_oracles(seed: int, spark, warehouse: Warehouse) -> None:
    Runner(spark, warehouse, kinds=ICEBERG, checks=True).run_seed(seed)
