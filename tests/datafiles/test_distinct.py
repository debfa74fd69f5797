"""Distinct numbers, as numpy's own function finds them."""

from __future__ import annotations

import numpy as np
import pytest

from spark_jobs.datafiles.runs import distinct


@pytest.mark.parametrize("seed", range(20))
def test_numbers_of_all_arrays_are_ascending_and_distinct(seed: int) -> None:
    chance = np.random.default_rng(seed)
    arrays = [chance.integers(-50, 50, chance.integers(0, 80)) for _ in range(1 + seed % 3)]
    found = distinct(*arrays)
    assert found.dtype == arrays[0].dtype
    assert found.tolist() == np.unique(np.concatenate(arrays)).tolist()


def test_no_numbers_are_none() -> None:
    assert not len(distinct(np.zeros(0, np.int64)))
