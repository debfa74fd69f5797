"""Random tables are maintained: nothing that is needed goes, nothing else is left.

Orphans are found by the driver alone and through Spark, which have to agree.

More of them: ``make test-maintenance N=500``.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.connectors.paimon.random_maintenance import maintain
from tests.support.turns import has_turn

_SEEDS = 40
_CHUNK = 10
_PARTS = 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "first", [each for each in range(0, _SEEDS, _CHUNK) if has_turn(each // _CHUNK, _PARTS)]
)
def test_random_histories(tmp_path: Path, spark: SparkSession, first: int) -> None:
    for seed in range(first, first + _CHUNK):
        warehouse = tmp_path / str(seed)
        warehouse.mkdir()
        maintain(warehouse, seed, spark)
