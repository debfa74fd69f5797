"""Long chains beside Java of Paimon and of Iceberg: each part has all kinds on both sides."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.chains.chain import Chain
from tests.chains.lakes import KINDS
from tests.judge.iceberg_spark import IcebergSpark
from tests.support.turns import EVERYTHING, part

_SIZE = len(KINDS)
_FIRST = _SIZE * part(_SIZE)
SEEDS = range(_SIZE * _SIZE) if EVERYTHING else range(_FIRST, _FIRST + _SIZE)
RUNS = 50 if EVERYTHING else 16


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.usefixtures("java")
def test_long_chains(
    spark: SparkSession, iceberg_spark: IcebergSpark, tmp_path: Path, seed: int
) -> None:
    chain = Chain(spark, tmp_path, iceberg_spark, seed)
    seen = chain.play(RUNS)
    print(seed, chain.pair, dict(seen))  # noqa: T201 - the counts are a result
    assert seen["committed"]
