"""Metrics and spans by OpenTelemetry, and backends that fail, hang or cannot be found."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_merge import metrics
from spark_jobs.contract.result import TimedPhase
from tests.airflow.metric_backends import DELETE, TAGS, WORK, initialize, of, sums
from tests.airflow.support import DagFile, FakeSubmitter, committed
from tests.support.metric_receivers import Collector, Statsd

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("airflow_db", "warehouse")]


class Broken:
    """A backend whose every call fails."""

    def __getattr__(self, name: str) -> Any:
        raise ConnectionError(f"no {name}")


class Hanging:
    """A backend that never answers."""

    def incr(self, *_: object, **__: object) -> None:
        time.sleep(60)

    timing = gauge = decr = incr


@pytest.mark.parametrize(("backend", "seconds"), [(Broken, 1.0), (Hanging, 5.0)])
def test_a_backend_that_fails_or_hangs(
    backend: type,
    seconds: float,
    without_backend: None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    initialize(backend)
    sample = metrics.Sample(metrics.ATTEMPTS, 1, "", TAGS)

    began = time.monotonic()
    metrics.send([sample])

    assert time.monotonic() - began < seconds
    assert "metrics" in caplog.text


def test_a_name_that_does_not_resolve(
    dag_file: Callable[[str], DagFile],
    submitter: FakeSubmitter,
    received: Statsd,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from airflow.sdk.observability.metrics.statsd_logger import get_statsd_logger

    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_HOST", "statsd.invalid")
    initialize(get_statsd_logger)

    assert dag_file(DELETE.format(more="")).run().state == "success"
    assert received.lines == []


def test_a_task_with_a_backend_that_fails(
    dag_file: Callable[[str], DagFile],
    submitter: FakeSubmitter,
    without_backend: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metrics, "_stats", Broken)

    run = dag_file(DELETE.format(more="")).run()

    assert run.state == "success"


def test_opentelemetry_gets_the_same(
    dag_file: Callable[[str], DagFile], submitter: FakeSubmitter, collected: Collector
) -> None:
    from opentelemetry import metrics as otel

    submitter.outcomes = [lambda request: committed(request, metrics=WORK)]

    assert dag_file(DELETE.format(more="")).run().state == "success"
    otel.get_meter_provider().force_flush()  # type: ignore[attr-defined]

    collected.wait_for_metric("airflow.merge.rows.updated")
    sent = sums(collected.metrics)
    assert sent[of("merge.rows.updated")] == 2
    assert sent[of("merge.conflicts")] == 2
    assert sent[of("merge.phase.write")] == 1500
    assert sent[of("merge.statements.committed")] == 1


def test_phases_are_spans_below_that_of_the_task(
    dag_file: Callable[[str], DagFile], submitter: FakeSubmitter, collected: Collector
) -> None:
    from opentelemetry import trace

    phases = (TimedPhase("plan", 1000.25, 0.5), TimedPhase("write", 1001.0, 2.0))
    submitter.outcomes = [lambda request: committed(request, metrics=WORK, phases=phases)]

    with trace.get_tracer("tests").start_as_current_span("worker.task"):
        assert dag_file(DELETE.format(more="")).run().state == "success"

    task = collected.wait_for_span("worker.task")
    statement = collected.wait_for_span("merge.delete")
    write = collected.wait_for_span("merge.phase.write")
    assert statement.parent_span_id == task.span_id
    assert write.parent_span_id == statement.span_id
    assert write.trace_id == task.trace_id
    assert (write.start_time_unix_nano, write.end_time_unix_nano) == (1001 * 10**9, 1003 * 10**9)
    assert statement.start_time_unix_nano == 1_000_250_000_000
    told = {each.key: each.value.string_value for each in statement.attributes}
    assert told["merge.table"] == "shop.orders"
    assert "id = 1" not in str(statement)


def test_no_spans_where_nothing_traces(
    dag_file: Callable[[str], DagFile], submitter: FakeSubmitter, collected: Collector
) -> None:
    phases = (TimedPhase("write", 1001.0, 2.0),)
    submitter.outcomes = [lambda request: committed(request, metrics=WORK, phases=phases)]

    assert dag_file(DELETE.format(more="")).run().state == "success"

    assert not [each for each in collected.spans if each.name.startswith("merge.")]
