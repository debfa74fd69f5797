"""Versions of a dimension (SCD2): a run adds what is new, whatever comes late, twice or again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.request import Origin
from tests.engine.dimensions import at, batch, dimension, history, run, spec
from tests.engine.random_dimensions import KINDS, run_chain
from tests.support.turns import EVERYTHING

pytestmark = pytest.mark.slow


def _row(key: int, v: str | None, time: int, *, gone: bool = False) -> dict[str, Any]:
    return {"id": key, "v": v, "n": "1", "u": f"u{time}", "at": at(time), "gone": gone}


@pytest.mark.by_turns(len(KINDS))
@pytest.mark.parametrize("kind", KINDS)
def test_versions_follow_each_other(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    harness = dimension(spark, tmp_path / "w", kind)
    first = batch(
        tmp_path / "b", [_row(1, "a", 1), _row(1, "b", 3), _row(1, "b", 4), _row(2, "c", 1)]
    )
    late = batch(tmp_path / "b", [_row(1, "x", 2), _row(2, None, 5, gone=True), _row(3, None, 1)])

    assert run(harness, spec(), first).metrics.inserted == 3
    result = run(harness, spec(), late, operation="late")
    snapshot = harness.latest_snapshot()
    again = run(harness, spec(), late, operation="late", origin=Origin(try_number=2))
    replayed = run(harness, spec(), late)

    assert (result.error, again.status, replayed.status) == (None, "committed", "unchanged")
    assert harness.latest_snapshot() == snapshot
    counts = result.metrics
    assert (counts.source_rows, counts.inserted, counts.updated, counts.deleted) == (3, 2, 2, 0)
    assert history(harness, ["id", "v", "u", "valid_from", "valid_to", "is_current"]) == [
        (1, "a", "u1", 1, 2, False),
        (1, "x", "u2", 2, 3, False),
        (1, "b", "u3", 3, None, True),
        (2, "c", "u1", 1, 5, False),
        (3, None, "u1", 1, None, True),
    ]


@pytest.mark.extended  # half a minute each; cases are in test_scd2_cases.py
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(1000, 1005) if EVERYTHING else [1000])
def test_random_logs(spark: SparkSession, tmp_path: Path, kind: str, seed: int) -> None:
    run_chain(spark, tmp_path, kind, seed, keys=60)
