from __future__ import annotations
from pathlib import Path
import pytest
from pyspark.sql import SparkSession
from tests.support.dimensions import at, batch, dimension, history, run, spec

@pytest.mark.parametrize("kind", ["append-cow", "primary-key", "iceberg-mor"])
def test_smoke(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    harness = dimension(spark, tmp_path / "w", kind)
    def row(id, v, t, n="1.0", u="u", gone=False):
        return dict(id=id, v=v, n=n, u=u, at=at(t), gone=gone)
    rows = batch(tmp_path / "b", [row(1, "a", 1), row(1, "b", 3), row(1, "b", 4), row(2, None, 1)])
    r = run(harness, spec(), rows)
    assert r.error is None, r.error
    print(r.metrics)
    for x in history(harness): print(x)
    r = run(harness, spec(), rows)
    assert r.error is None, r.error
    assert r.status == "unchanged", r
    rows = batch(tmp_path / "b", [row(1, "x", 2), row(2, None, 2, gone=True), row(1, "c", 6), row(3, "z", 1, gone=True)])
    r = run(harness, spec(), rows)
    assert r.error is None, r.error
    for x in history(harness): print(x)
    print(r.metrics.inserted, r.metrics.updated, r.metrics.deleted)
