"""What Airflow's metrics backend gets of statements and sensors."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowTaskTimeout

from airflow_provider_merge import metrics
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import ErrorInfo, JobResult, Metrics
from tests.airflow.metric_backends import DELETE, WORK, after, of
from tests.airflow.support import DagFile, FakeSubmitter, committed, connection, failed
from tests.support.metric_receivers import Statsd
from tests.support.paimon_metadata import TableFiles

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("airflow_db", "warehouse")]

CONFLICT = ErrorInfo("COMMIT_CONFLICT", "somebody was there", "", retryable=True)


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


def test_a_task_that_takes_too_long(
    dag_file: Callable[[str], DagFile], submitter: FakeSubmitter, received: Statsd
) -> None:
    def late(_: JobRequest) -> JobResult:
        raise AirflowTaskTimeout("Timeout")

    submitter.outcomes = [late]

    assert dag_file(DELETE.format(more="")).run().state == "failed"

    sent = after(received, "merge.statements.failed")
    assert sent == {of("merge.statements.failed", code="TIMED_OUT"): 1}


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
