"""Random files have the same rows for every reader, or are an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.landing.formats import FORMATS

SEEDS = range(100)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_files(tmp_path: Path, name: str, seed: int) -> None:
    assert FORMATS[name](seed, tmp_path)["files"] == 1
