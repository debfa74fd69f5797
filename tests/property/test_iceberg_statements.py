"""Random statements on Iceberg tables do what the oracle says, copied on write or merged on read.

`make test-property OTHERS=iceberg` runs more.
"""

from __future__ import annotations

import pytest

from tests.property.paimon_tables import Warehouse
from tests.property.runner import Runner
from tests.support.table_kinds import ICEBERG

SEEDS = range(40_000, 40_027)


@pytest.fixture(scope="module")
def iceberg_runner(spark, tmp_path_factory) -> Runner:
    folder = tmp_path_factory.mktemp("iceberg") / "warehouse"
    folder.mkdir()
    return Runner(spark, Warehouse(folder), kinds=ICEBERG)


@pytest.mark.slow
@pytest.mark.by_turns(9)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_statements(iceberg_runner: Runner, seed: int) -> None:
    iceberg_runner.run_seed(seed)
