"""Short chains, beside which no JVM of Iceberg's runs; ``test_long_chains`` has the long ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.chains.chain import Chain, Pair
from tests.chains.lakes import KINDS

SEEDS = range(1000, 1000 + len(KINDS))


def test_six_chains_in_a_row_have_all_kinds() -> None:
    size = len(KINDS)
    for first in range(0, 100, size):
        pairs = [Pair.of(seed) for seed in range(first, first + size)]
        assert sorted(each.source for each in pairs) == sorted(KINDS)
        assert sorted(each.target for each in pairs) == sorted(KINDS)
    assert len({Pair.of(seed) for seed in range(size * size)}) == size * size


@pytest.mark.slow
@pytest.mark.by_turns(6)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.usefixtures("java")
def test_short_chains(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    assert Chain(spark, tmp_path, None, seed).play(5)["committed"]
