"""A table of 20,000 files: a statement on one day leaves that day's files alone for Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.many_files import create_table, fill_table, manifest_reads, update_days

pytestmark = pytest.mark.slow


def test_one_day_of_a_thousand(spark, tmp_path: Path) -> None:
    fill_table(create_table(tmp_path), days=1000, files_per_day=20)

    result = update_days(spark, tmp_path, "one-day")

    assert result.error is None
    metrics = result.metrics
    assert (metrics.files_total, metrics.files_scanned) == (20_000, 1)
    assert (metrics.updated, metrics.files_rewritten) == (2, 1)


def test_a_merge_reads_each_manifest_once(spark, tmp_path: Path) -> None:
    fill_table(create_table(tmp_path), days=60, files_per_day=2, commits=12)

    with manifest_reads() as reads:
        result = update_days(spark, tmp_path, "ten-days", days=10)

    assert result.error is None
    assert (result.metrics.files_rewritten, result.metrics.updated) == (10, 20)
    assert len(reads) >= 12
    assert set(reads.values()) == {1}
