"""Random histories: what expires, and which files go, as by Spark's procedure."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.connectors.iceberg.care_histories.history import CareHistory
from tests.judge.iceberg_spark import IcebergSpark


@pytest.mark.by_turns(3)
@pytest.mark.parametrize("seed", [4, 11, 10, 37, 16, 18])
def test_expiry_leaves_what_sparks_procedure_leaves(iceberg_spark: IcebergSpark, seed: int) -> None:
    kinds: Counter[str] = Counter()

    assert CareHistory(iceberg_spark, seed, kinds).differences(14) == []

    assert kinds["expired snapshots"] or kinds["removed specs"]
