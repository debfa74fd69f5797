"""What a snapshot records of its operation is read again, also from snapshots of older releases."""

from __future__ import annotations

import json
from types import MappingProxyType

from hypothesis import given

from spark_jobs.contract.properties import METRICS, metrics_property, result_of_snapshot
from spark_jobs.contract.result import Metrics, SourceMetrics
from tests.contract.strategies import metrics

READ = SourceMetrics(2, 900, 30, 4, 5, 6, "/bad/dag/run/task/orders.jsonl")


@given(metrics)
def test_metrics_survive(original: Metrics) -> None:
    properties = metrics_property(original)
    assert all(isinstance(value, str) for value in properties.values())
    assert result_of_snapshot("db.t", 8, properties).metrics == original


def test_the_sources_of_any_mapping_survive() -> None:
    original = Metrics(sources=MappingProxyType({"orders": READ}))
    found = result_of_snapshot("db.t", 8, metrics_property(original)).metrics
    assert found.sources == {"orders": READ}


def test_a_snapshot_without_sources_is_read() -> None:
    properties = {METRICS: json.dumps({"updated": 2, "seconds": {"join": 0.5}})}
    found = result_of_snapshot("db.t", 8, properties).metrics
    assert (found.updated, found.sources) == (2, {})


def test_a_source_with_some_counts_is_read() -> None:
    properties = {METRICS: json.dumps({"sources": {"orders": {"records": 30}}})}
    found = result_of_snapshot("db.t", 8, properties).metrics
    assert found.sources == {"orders": SourceMetrics(records=30)}
