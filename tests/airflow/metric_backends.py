"""Backends of Airflow's metrics in the tests' own process, and what they got."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from airflow.sdk.observability.stats import Stats

from spark_jobs.contract.result import Metrics, SourceMetrics
from tests.support.metric_receivers import Collector, Received, Statsd, collector, statsd

DELETE = 'DeleteFromOperator(task_id="task", target="shop.orders", where="id = 1"{more})'
WORK = Metrics(
    source_rows=7,
    inserted=1,
    updated=2,
    deleted=3,
    carried=4,
    files_added=5,
    files_removed=6,
    files_rewritten=1,
    bytes_added=700,
    bytes_removed=800,
    attempts=3,
    publish_attempts=2,
    seconds={"session": 2.5, "write": 1.5},
    sources={"updates": SourceMetrics(bytes=900)},
)
TAGS = {"kind": "delete", "format": "paimon"}
Sent = dict[tuple[str, frozenset[tuple[str, str]]], float]


def initialize(factory: Callable[[], Any]) -> None:
    """Begin anew, as each task does; the parameter is of Airflow 3.3."""
    begin: Any = Stats.initialize
    try:
        begin(factory=factory, export_legacy_names=False)
    except TypeError:
        begin(factory=factory)


@pytest.fixture
def without_backend() -> Iterator[None]:
    """Afterwards, no metrics are sent any more."""
    from airflow.sdk._shared.observability.metrics.base_stats_logger import NoStatsLogger

    yield
    initialize(NoStatsLogger)


@pytest.fixture
def received(without_backend: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Statsd]:
    """A StatsD server that Airflow sends to, with tags."""
    pytest.importorskip("statsd")
    from airflow.sdk.observability.metrics.statsd_logger import get_statsd_logger

    with statsd() as server:
        monkeypatch.setenv("AIRFLOW__METRICS__STATSD_HOST", "127.0.0.1")
        monkeypatch.setenv("AIRFLOW__METRICS__STATSD_PORT", str(server.port))
        monkeypatch.setenv("AIRFLOW__METRICS__STATSD_INFLUXDB_ENABLED", "True")
        initialize(get_statsd_logger)
        yield server


@pytest.fixture
def collected(without_backend: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector that Airflow sends metrics and spans to."""
    from airflow.sdk._shared.observability.metrics import otel_logger
    from airflow.sdk.observability.metrics.otel_logger import get_otel_logger
    from opentelemetry import metrics as otel
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    with collector() as server:
        address = f"http://127.0.0.1:{server.port}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
        monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "60000")
        initialize(get_otel_logger)
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{address}/v1/traces")))
        monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
        yield server
        # Airflow would send what is left when this process ends.
        atexit.unregister(otel_logger.flush_otel_metrics)
        otel.get_meter_provider().shutdown()  # type: ignore[attr-defined]


def sums(found: list[Received]) -> Sent:
    """What was counted, or timed, by name and tags; only of this project."""
    sent: Sent = {}
    for each in found:
        if each.name.startswith("airflow.merge."):
            key = (each.name.removeprefix("airflow."), frozenset(each.tags.items()))
            sent[key] = sent.get(key, 0) + each.value
    return sent


def of(name: str, **tags: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset({**TAGS, **tags}.items())


def after(server: Statsd, name: str) -> Sent:
    """All that came, once the last of it has."""
    server.wait_for(f"airflow.{name}")
    return sums(server.received())
