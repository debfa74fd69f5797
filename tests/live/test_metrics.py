"""What a real Airflow sends of statements, and what it shows of one that takes long."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.live.browser import Browser
from tests.live.conftest import running_server
from tests.live.server import Server
from tests.live.spark_python import SparkPython
from tests.live.table import Table
from tests.support.metric_receivers import Collector, Statsd, collector, statsd
from tests.support.waiting import wait_for

NAME = "metrics"
_TABLE = """
table = tables.create(connector, {"id": "BIGINT"}, name=name)
tables.append_with_pypaimon(table, [{"id": id} for id in (1, 2, 3)])
"""
_DAG = """
from datetime import datetime
from airflow.sdk import DAG
from airflow_provider_merge.operators.delete_from import DeleteFromOperator
from airflow_provider_merge.operators.insert_into import InsertIntoOperator
from airflow_provider_merge.sensors.snapshot import SnapshotSensor

TARGET = "shop.{name}"
SLEEP = "java_method('java.lang.Thread', 'sleep', CAST(1500 AS BIGINT))"

def tell(context):
    error = context["exception"]
    print("the callback saw", error.code, error.table, repr(error.guard))

with DAG({name!r}, schedule=None, start_date=datetime(2024, 1, 1), default_args={{"retries": 0}}):
    SnapshotSensor(task_id="sensor", table=TARGET, after="2020-01-01T00:00:00+00:00")
    DeleteFromOperator(
        task_id="fails", target=TARGET, where="idd = 1", on_failure_callback=tell
    )
    DeleteFromOperator(task_id="quick", target=TARGET, where="id = 1")

with DAG("{name}_slow", schedule=None, start_date=datetime(2024, 1, 1)):
    # A row of each of 40 tasks sleeps.
    InsertIntoOperator(
        task_id="slow",
        sql="INSERT INTO shop.{name} SELECT id FROM range(100, 140, 1, 40) WHERE "
        + SLEEP + " IS NOT NULL",
    )
"""


@dataclass(frozen=True)
class Watched:
    """A server, a table, and who gets metrics and spans."""

    server: Server
    table: Table
    statsd: Statsd
    collector: Collector

    def add_dags(self) -> None:
        """The table, and two DAGs that change it."""
        self.table.python(_TABLE)
        self.server.add_dag(NAME, _DAG.format(name=NAME))


@pytest.fixture
def watched(
    request: pytest.FixtureRequest,
    settings: dict[str, str],
    spark_python: SparkPython,
    tmp_path: Path,
) -> Iterator[Watched]:
    """A server of its own, with the settings that the test gives for both backends."""
    with statsd() as receiver, collector() as spans:
        ports = {"statsd": receiver.port, "otlp": spans.port}
        own = {name: value.format(**ports) for name, value in request.param.items()}
        folder = tmp_path / "live"
        folder.mkdir()
        with running_server(folder, {**settings, **own}) as server:
            table = Table(server, folder / "warehouse", spark_python, NAME)
            yield Watched(server, table, receiver, spans)


STATSD = {
    "AIRFLOW__METRICS__STATSD_ON": "True",
    "AIRFLOW__METRICS__STATSD_HOST": "127.0.0.1",
    "AIRFLOW__METRICS__STATSD_PORT": "{statsd}",
    "AIRFLOW__METRICS__STATSD_INFLUXDB_ENABLED": "True",
}
COLLECTOR = {
    "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:{otlp}",
    "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    "OTEL_TRACES_EXPORTER": "otlp_proto_http",
}
TRACES = {"AIRFLOW__TRACES__OTEL_ON": "True", **COLLECTOR}
METRICS = {"AIRFLOW__METRICS__OTEL_ON": "True", **COLLECTOR}


@pytest.mark.parametrize("watched", [{**STATSD, **TRACES}], indirect=True, ids=["statsd"])
def test_statsd_spans_and_progress(watched: Watched, browser: Browser, tmp_path: Path) -> None:
    client, table = watched.server.client, watched.table
    watched.add_dags()

    client.trigger(f"{NAME}_slow", "run")
    on_the_page(watched, browser, tmp_path)
    assert client.ended(f"{NAME}_slow", "run") == "success", table.story(f"{NAME}_slow")
    in_the_log(client.log(f"{NAME}_slow", "run", "slow", 1))
    its_end(watched, browser, tmp_path)
    client.trigger(NAME, "run")
    assert client.ended(NAME, "run") == "failed"

    log = client.log(NAME, "run", "fails", 1)
    assert f"the callback saw COLUMN_NOT_FOUND shop.{NAME} ''" in log, log
    values(watched.statsd)
    spans(watched.collector)


def on_the_page(watched: Watched, browser: Browser, pictures: Path) -> None:
    """While the statement runs, its table's page says so."""
    place = f"connection=paimon_default&database=shop&table={NAME}"
    browser.resize(1300, 820)
    browser.open(f"{watched.server.client.url}/lakehouse/table?{place}")
    card = "//section[@aria-label='Statements at work']//div[contains(@class, 'running')]"
    shown = wait_for("a share on the page", lambda: _share(browser.text(card)))
    assert "running" in shown
    assert f"{NAME}_slow / slow" in shown
    assert re.search(r"Phase\s+(source|write)", shown), shown
    browser.picture(pictures / "running.png")


def _share(text: str) -> str:
    return text if re.search(r"[1-9]\d* of \d+ \(\d+\.\d %\)", text) else ""


def its_end(watched: Watched, browser: Browser, pictures: Path) -> None:
    """The page that has shown it tells how it ended; one of long ago is not known."""
    text = browser.text("//section[@aria-label='Statements at work']//p[contains(., 'ended')]")
    assert "has ended: committed" in text
    browser.picture(pictures / "ended.png")
    place = f"connection=paimon_default&database=shop&table={NAME}&operation=long-ago"
    browser.open(f"{watched.server.client.url}/lakehouse/table?{place}")
    unknown = browser.text("//section[@aria-label='Statements at work']//p")
    assert "long-ago does not run. Nothing is known of it" in unknown


def in_the_log(log: str) -> None:
    """Lines of progress, with a share."""
    lines = [line for line in log.splitlines() if "progress: " in line]
    assert lines, log
    assert any(re.search(r"\d+ of \d+ tasks of its stages \(\d+ %\)", line) for line in lines)
    assert "java_method" not in "".join(lines)


def values(receiver: Statsd) -> None:
    """What StatsD got of the tasks."""
    tags = {"kind": "delete", "format": "paimon"}
    (quick,) = receiver.wait_for("airflow.merge.rows.deleted")
    assert (quick.value, quick.tags) == (1, tags)
    (failed,) = receiver.wait_for("airflow.merge.statements.failed")
    assert failed.tags == {**tags, "code": "COLUMN_NOT_FOUND"}
    (inserted,) = receiver.wait_for("airflow.merge.rows.inserted")
    assert (inserted.value, inserted.tags["kind"]) == (40, "insert_into")
    for name in ("session", "source", "write", "commit", "end"):
        assert receiver.wait_for(f"airflow.merge.phase.{name}")
    (lag,) = receiver.wait_for("airflow.merge.sensor.lag")
    assert (lag.kind, lag.tags) == ("ms", {"sensor": "SnapshotSensor"})
    # Airflow's own arrive, too.
    assert [each for each in receiver.received() if each.name.startswith("airflow.ti.")]


def spans(found: Collector) -> None:
    """The phases below the statement, that below its task."""
    task = found.wait_for_span("worker.slow")
    statement = found.wait_for_span("merge.insert_into")
    phases = [each for each in found.spans if each.parent_span_id == statement.span_id]
    assert statement.parent_span_id == task.span_id
    assert {"merge.phase.analyze", "merge.phase.commit"} <= {each.name for each in phases}
    assert task.start_time_unix_nano < statement.start_time_unix_nano
    assert statement.end_time_unix_nano < task.end_time_unix_nano
    assert "java_method" not in str(statement)


@pytest.mark.parametrize("watched", [METRICS], indirect=True, ids=["opentelemetry"])
def test_opentelemetry(watched: Watched) -> None:
    client = watched.server.client
    watched.add_dags()

    client.trigger(NAME, "run")
    assert client.ended(NAME, "run") == "failed"

    (deleted,) = watched.collector.wait_for_metric("airflow.merge.rows.deleted")
    assert (deleted.value, deleted.tags) == (1, {"kind": "delete", "format": "paimon"})
    (failed,) = watched.collector.wait_for_metric("airflow.merge.statements.failed")
    assert failed.tags["code"] == "COLUMN_NOT_FOUND"
    assert watched.collector.wait_for_metric("airflow.merge.phase.commit")
    assert watched.collector.wait_for_metric("airflow.merge.sensor.lag")
    # Nothing was sent to the other backend.
    assert watched.statsd.lines == []
