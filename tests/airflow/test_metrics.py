"""What Airflow's metrics backend gets of statements and sensors, by StatsD and OpenTelemetry."""

from __future__ import annotations

import atexit
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from airflow.sdk.observability.stats import Stats

from airflow_provider_merge import metrics
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import ErrorInfo, JobResult, Metrics, SourceMetrics, TimedPhase
from tests.airflow.support import DagFile, FakeSubmitter, committed, connection, failed
from tests.support.metric_receivers import Collector, Received, Statsd, collector, statsd
from tests.support.paimon_metadata import TableFiles

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("airflow_db", "warehouse")]

DELETE = 'DeleteFromOperator(task_id="task", target="shop.orders", where="id = 1"{more})'
CONFLICT = ErrorInfo("COMMIT_CONFLICT", "somebody was there", "", retryable=True)
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


def test_all_of_a_statement(
    dag_file: Callable[[str], DagFile], submitter: FakeSubmitter, received: Statsd
) -> None:
    submitter.outcomes = [lambda request: committed(request, metrics=WORK)]

    assert dag_file(DELETE.format(more="")).run().state == "success"

    sent = after(received, "merge.snapshots.made")
    wanted = {
        "merge.statements.committed": 1,
        "merge.rows.read": 7,
        "merge.rows.inserted": 1,
        "merge.rows.updated": 2,
        "merge.rows.deleted": 3,
        "merge.rows.copied": 4,
        "merge.files.added": 5,
        "merge.files.removed": 6,
        "merge.files.rewritten": 1,
        "merge.bytes.read": 900,
        "merge.bytes.added": 700,
        "merge.bytes.removed": 800,
        "merge.snapshots.made": 1,
        "merge.attempts": 3,
        "merge.conflicts": 2,
        "merge.publish_attempts": 2,
        "merge.phase.session": 2500,
        "merge.phase.write": 1500,
    }
    assert {name: sent[of(name)] for name in wanted} == wanted
    assert sent[of("merge.duration")] >= 4000
    more = {name for name, _ in sent} - wanted.keys()
    assert more == {"merge.duration", "merge.phase.prepare", "merge.phase.end"}


def test_a_failure_has_its_code_and_what_its_job_tells(
    dag_file: Callable[[str], DagFile], submitter: FakeSubmitter, received: Statsd
) -> None:
    lost = Metrics(attempts=5, seconds={"write": 2.0})
    submitter.outcomes = [lambda request: failed(request, CONFLICT, metrics=lost)]

    assert dag_file(DELETE.format(more="")).run().state == "failed"

    sent = after(received, "merge.phase.write")
    assert sent == {
        of("merge.statements.failed", code="COMMIT_CONFLICT"): 1,
        of("merge.attempts"): 5,
        of("merge.conflicts"): 5,
        of("merge.phase.write"): 2000,
        of("merge.duration"): 2000,
    }


def test_a_failure_before_there_is_a_job(
    dag_file: Callable[[str], DagFile], warehouse: Any, received: Statsd
) -> None:
    TableFiles(warehouse).create()

    run = dag_file(DELETE.format(more="").replace("id = 1", "idd = 1")).run()

    assert run.state == "failed"
    sent = after(received, "merge.statements.failed")
    assert sent == {of("merge.statements.failed", code="COLUMN_NOT_FOUND"): 1}


def test_a_task_without_its_connection(
    dag_file: Callable[[str], DagFile], received: Statsd
) -> None:
    run = dag_file(DELETE.format(more=', catalog_conn_id="nowhere"')).run()

    assert run.state == "failed"
    sent = after(received, "merge.statements.failed")
    unknown = frozenset({"kind": "unknown", "format": "unknown", "code": "REQUEST_INVALID"}.items())
    assert sent == {("merge.statements.failed", unknown): 1}


def test_a_retry_that_finds_what_an_earlier_try_committed(
    dag_file: Callable[[str], DagFile], submitter: FakeSubmitter, received: Statsd
) -> None:
    submitter.outcomes = [lambda request: committed(request, metrics=WORK, try_number=0)]

    assert dag_file(DELETE.format(more="")).run().state == "success"

    sent = after(received, "merge.retries.found")
    assert sent == {of("merge.statements.found"): 1, of("merge.retries.found"): 1}


def test_a_dry_run_changes_no_rows(
    dag_file: Callable[[str], DagFile], submitter: FakeSubmitter, received: Statsd
) -> None:
    submitter.outcomes = [lambda request: committed(request, status="dry_run", metrics=WORK)]

    assert dag_file(DELETE.format(more=", dry_run=True")).run().state == "success"

    sent = after(received, "merge.bytes.read")
    names = {name for name, _ in sent}
    assert "merge.statements.dry_run" in names
    assert not names & {"merge.rows.deleted", "merge.files.added", "merge.snapshots.made"}


LIST = """
StatementsOperator(task_id="many", statements=[
    delete_from("old", target="shop.orders", where="id = 1"),
    delete_from("gone", target="shop.orders", where="id = 2"),
    delete_from("late", target="shop.parcels", where="id = 3"),
])
"""


def test_each_statement_of_a_list(
    dag_file: Callable[[str], DagFile], submitter: FakeSubmitter, received: Statsd
) -> None:
    def nothing(_: JobRequest) -> JobResult | None:
        return None

    wrong = ErrorInfo("NOT_NULL_VIOLATION", "column a is NULL", "Look.", retryable=False)
    submitter.outcomes = [committed, lambda request: failed(request, wrong), nothing]

    assert dag_file(LIST).run().state == "failed"

    sent = after(received, "merge.statements.not_run")
    assert {key: value for key, value in sent.items() if "statements" in key[0]} == {
        of("merge.statements.committed"): 1,
        of("merge.statements.failed", code="NOT_NULL_VIOLATION"): 1,
        of("merge.statements.not_run"): 1,
    }


def test_tables_are_a_tag_only_where_they_are_named(
    dag_file: Callable[[str], DagFile],
    submitter: FakeSubmitter,
    received: Statsd,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIRFLOW__MERGE__METRICS_TABLES", "shop.Orders, shop.others")

    dag_file(LIST).run()

    sent = after(received, "merge.statements.committed")
    assert sent[of("merge.statements.committed", table="shop.orders")] == 2
    assert sent[of("merge.statements.committed", table="other")] == 1


SENSOR = """
from airflow_provider_merge.sensors.snapshot import SnapshotSensor
SnapshotSensor(
    task_id="task", table="{table}", after="2026-01-01T00:00:00+00:00", timeout=1, poke_interval=0.2
)
"""


def test_how_long_ago_it_was_what_a_sensor_finds(
    dag_file: Callable[[str], DagFile], warehouse: Any, received: Statsd
) -> None:
    table = TableFiles(warehouse).create()
    table.add({"2026-01-30": 5}, time_millis=int(time.time() * 1000) - 60_000)

    for name in ("shop.orders", "shop.missing"):
        dag_file(SENSOR.format(table=name)).run()

    sent = after(received, "merge.sensor.failed")
    sensor = ("sensor", "SnapshotSensor")
    assert sent["merge.sensor.found", frozenset({sensor})] == 1
    assert 60_000 <= sent["merge.sensor.lag", frozenset({sensor})] < 600_000
    assert sent["merge.sensor.failed", frozenset({sensor, ("code", "TABLE_NOT_FOUND")})] == 1


def test_every_name_that_is_sent_is_in_the_list(
    dag_file: Callable[[str], DagFile], submitter: FakeSubmitter, received: Statsd
) -> None:
    odd = Metrics(seconds={"delete": 1.0, "of a later release": 1.0})
    submitter.outcomes = [lambda request: committed(request, metrics=odd)]

    dag_file(DELETE.format(more="")).run()

    sent = after(received, "merge.snapshots.made")
    assert {of("merge.phase.maintain"), of("merge.phase.other")} <= sent.keys()
    known = {name: each.tags for each in metrics.METRICS for name in each.names}
    for name, tags in sent:
        assert {tag for tag, _ in tags} <= set(known[name])


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


def test_tasks_of_a_connection_with_secrets_tell_none(
    dag_file: Callable[[str], DagFile],
    submitter: FakeSubmitter,
    received: Statsd,
    warehouse: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secret = "planted-and-never-told"
    extra = {"warehouse": str(warehouse), "options": {"my.secret-key": secret}}
    connection(monkeypatch, "paimon_default", conn_type="paimon", password=secret, extra=extra)
    wrong = ErrorInfo("STORAGE_UNAVAILABLE", f"key {secret} was refused", "", retryable=True)
    submitter.outcomes = [lambda request: failed(request, wrong)]

    dag_file(DELETE.format(more="")).run()

    after(received, "merge.statements.failed")
    assert secret not in "".join(received.lines)
