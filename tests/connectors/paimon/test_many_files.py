"""A table of 20,000 files: a statement on one day leaves that day's files alone for Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.many_files import create_table, fill_table, update_one_day

pytestmark = pytest.mark.slow


def test_one_day_of_a_thousand(spark, tmp_path: Path) -> None:
    fill_table(create_table(tmp_path), days=1000, files_per_day=20)

    result = update_one_day(spark, tmp_path, "one-day")

    assert result.error is None
    metrics = result.metrics
    assert (metrics.files_total, metrics.files_scanned) == (20_000, 1)
    assert (metrics.updated, metrics.files_rewritten) == (2, 1)
