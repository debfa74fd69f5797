"""The links of a task: which page they show while it runs and afterwards, and which never."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from airflow.models.taskinstancekey import TaskInstanceKey
from airflow.serialization.definitions.operatorlink import XComOperatorLink
from airflow.serialization.serialized_objects import DagSerialization

from airflow_provider_merge.hooks.paimon import PaimonHook
from airflow_provider_merge.links import QUARANTINE_PAGE, SNAPSHOT_PAGE, SPARK_PAGE, TABLE_PAGE
from airflow_provider_merge.submit.applications import SparkApplication
from airflow_provider_merge.submit.spark_submit import SparkSubmitSubmitter
from airflow_provider_merge.submit.submitter import SparkJob, SparkSettings
from spark_jobs.contract.request import TableName
from spark_jobs.contract.result import Metrics, SourceMetrics
from spark_jobs.errors import RequestError
from tests.airflow.launcher import Launcher
from tests.airflow.support import (
    PASSWORD,
    DagFile,
    FakeSubmitter,
    committed,
    connection,
    example_request,
)

TABLE = TableName("shop", "orders")
KEYS = (SNAPSHOT_PAGE, QUARANTINE_PAGE, SPARK_PAGE)
MERGE = """
MergeIntoOperator(
    task_id="merge", target="shop.orders", source=table_source("shop.updates"),
    on="t.id = s.id", when=[when_matched().update_all()],
)
MergeIntoOperator.partial(
    task_id="mapped", source=table_source("shop.updates"), on="t.id = s.id",
    when=[when_matched().update_all()],
).expand(target=["shop.a", "shop.b"])
"""
ONE = MERGE[: MERGE.index("MergeIntoOperator.partial")]
HISTORY = "https://history.example/spark"
# What a launcher says as the job does, with the secret of its folder.
SIGNED = """
secret = open(arguments[arguments.index("--answers") + 1] + "/line-secret").read()
print({lines!r}.replace("SIGNED", secret))
"""
DRIVER = "12:00 job: SIGNED Spark application id: local-17, web UI: http://worker:4040"
CLIENT = "26/11/26 12:00:00 INFO Client: "
YARN = [
    f"{CLIENT}Application report for application_1_0002 (state: ACCEPTED)",
    CLIENT,
    "\t client token: N/A",
    "\t tracking URL: http://rm:8088/proxy/a/",
]
EVIL = "\t tracking URL: https://evil.example/"
OUTPUTS = {
    "driver, history": ([DRIVER], HISTORY, "http://worker:4040", f"{HISTORY}/history/local-17/"),
    "driver, no history": ([DRIVER], "", "http://worker:4040", ""),
    "no web UI": (
        [DRIVER.replace("http://worker:4040", "none")],
        HISTORY,
        f"{HISTORY}/history/local-17/",
        f"{HISTORY}/history/local-17/",
    ),
    "no web UI, no history": ([DRIVER.replace("http://worker:4040", "none")], "", "", ""),
    "YARN, no history": (
        YARN,
        "",
        "http://rm:8088/proxy/a/",
        "http://rm:8088/proxy/a/",
    ),
    "YARN, history": (
        YARN,
        f"{HISTORY}/",
        "http://rm:8088/proxy/a/",
        f"{HISTORY}/history/application_1_0002/",
    ),
    "Kubernetes": (
        [
            "26/11/26 12:00:00 INFO LoggingPodStatusWatcherImpl: State changed, new state: ",
            "\t pod name: job-driver",
            "\t labels: spark-app-selector -> spark-0a1b, spark-role -> driver",
        ],
        HISTORY,
        f"{HISTORY}/history/spark-0a1b/",
        f"{HISTORY}/history/spark-0a1b/",
    ),
    "a script": (
        [CLIENT, "\t tracking URL: javascript:a(1)", DRIVER],
        "",
        "http://worker:4040",
        "",
    ),
    "a password": (
        [CLIENT, "\t tracking URL: http://u:p@h/", DRIVER],
        "",
        "http://worker:4040",
        "",
    ),
    "a row's claim": ([DRIVER, EVIL, f"x{EVIL}"], "", "http://worker:4040", ""),
    "a row that looks like the client": ([DRIVER, CLIENT, EVIL], "", "http://worker:4040", ""),
    "an error in a library": (["ERROR Task: no", EVIL, DRIVER], "", "http://worker:4040", ""),
    "a row that looks like the job": (
        [DRIVER.replace("SIGNED ", "").replace("worker", "evil"), DRIVER],
        "",
        "http://worker:4040",
        "",
    ),
    "a later claim": ([DRIVER, DRIVER.replace("worker", "evil")], "", "http://worker:4040", ""),
}


@pytest.mark.parametrize(
    ("lines", "history", "running", "ended"), OUTPUTS.values(), ids=OUTPUTS.keys()
)
def test_pages_of_an_application(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lines: list[str],
    history: str,
    running: str,
    ended: str,
) -> None:
    extra = {"spark-history-url": history}
    connection(monkeypatch, "spark_default", conn_type="spark", host="local[1]", extra=extra)
    then = SIGNED.format(lines="\n".join(lines))
    launcher = Launcher.make(tmp_path / "env", then)
    heard: list[SparkApplication] = []
    job = SparkJob("dag.task", example_request(), announce=heard.append)
    SparkSubmitSubmitter(SparkSettings(spark_env=str(launcher.folder))).submit(job)
    assert (heard[-1].page, heard[-1].last_page) == (running, ended)


@pytest.mark.parametrize("address", ["history.example", "https://u:p@history.example"])
def test_a_wrong_history_server_is_only_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, address: str
) -> None:
    extra = {"spark-history-url": address}
    connection(monkeypatch, "spark_default", conn_type="spark", host="local[1]", extra=extra)
    launcher = Launcher.make(tmp_path / "env", SIGNED.format(lines=DRIVER))
    heard: list[SparkApplication] = []
    job = SparkJob("dag.task", example_request(), announce=heard.append)
    SparkSubmitSubmitter(SparkSettings(spark_env=str(launcher.folder))).submit(job)
    assert heard[-1].last_page == ""
    assert "connection 'spark_default', spark-history-url" in caplog.text
    assert "u:p" not in caplog.text


def lake(monkeypatch: pytest.MonkeyPatch, folder: Path, **extra: Any) -> PaimonHook:
    extra = {"warehouse": str(folder), **extra}
    connection(monkeypatch, "paimon_default", conn_type="paimon", extra=extra)
    return PaimonHook()


PAGE = "https://lake.example/{database}/t/{table}?snapshot={snapshot_id}"


def test_page_of_a_snapshot(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hook = lake(monkeypatch, tmp_path, ui_url=PAGE)
    assert hook.snapshot_page(TABLE, 8) == "https://lake.example/shop/t/orders?snapshot=8"
    odd = hook.snapshot_page(TableName("a b", "x&y?$branch_c"), 8)
    assert odd == "https://lake.example/a%20b/t/x%26y%3F%24branch_c?snapshot=8"
    assert "ui_url" not in hook.catalog_spec().options
    assert lake(monkeypatch, tmp_path).snapshot_page(TABLE, 8) == ""


FILES_PAGE = "https://files.example/view?path={path}"


def test_page_of_quarantined_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hook = lake(monkeypatch, tmp_path, **{"quarantine-url": FILES_PAGE})
    assert hook.quarantine_page("/bad/d/a%3Ab/t/s.jsonl") == (
        "https://files.example/view?path=/bad/d/a%253Ab/t/s.jsonl"
    )
    odd = hook.quarantine_page("s3://bucket/a&b?#")
    assert odd == "https://files.example/view?path=s3%3A//bucket/a%26b%3F%23"
    assert "quarantine-url" not in hook.catalog_spec().options
    assert lake(monkeypatch, tmp_path).quarantine_page("/bad") == ""


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ("files.example/{path}", "is not the address of a page"),
        ("https://files.example/{file}", r"unknown placeholder \{file\}.*Known: \{path\}"),
        (f"https://files.example/{{path}}?token={PASSWORD}", "holds a secret"),
    ],
)
def test_wrong_pages_of_quarantined_rows_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, page: str, problem: str
) -> None:
    hook = lake(monkeypatch, tmp_path, **{"quarantine-url": page})
    with pytest.raises(RequestError, match=f"'paimon_default', quarantine-url.*{problem}"):
        hook.quarantine_page("/bad")
    works, text = hook.test_connection()
    assert not works
    assert "quarantine-url" in text
    assert PASSWORD not in text


WRONG_PAGES = {
    "lake.example/{table}": "is not the address of a page",
    "javascript:alert({snapshot_id})": "is not the address of a page",
    "https://lake.example/{tabel}": r"unknown placeholder \{tabel\}.*\{database\}, \{table\}",
    f"https://u:{PASSWORD}@lake.example/": "holds a secret",
    f"https://lake.example/?token={PASSWORD}": "holds a secret",
}


@pytest.mark.parametrize(("page", "problem"), WRONG_PAGES.items(), ids=WRONG_PAGES)
def test_wrong_pages_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, page: str, problem: str
) -> None:
    hook = lake(monkeypatch, tmp_path, ui_url=page)
    with pytest.raises(
        RequestError, match=f"connection 'paimon_default', ui_url.*{problem}"
    ) as caught:
        hook.snapshot_page(TABLE, 8)
    assert PASSWORD not in str(caught.value)
    works, text = hook.test_connection()
    assert not works
    assert "ui_url" in text
    assert PASSWORD not in text


def test_the_server_needs_no_code_of_the_dag(dag_file: Callable[..., DagFile]) -> None:
    file = dag_file(MERGE)
    document = json.loads(json.dumps(DagSerialization.to_dict(file.dag())))
    file.path.unlink()
    tasks = DagSerialization.from_dict(document).task_dict
    for task in (tasks["merge"], tasks["mapped"]):
        keys = {link.name: link.xcom_key for link in task.operator_extra_links}
        assert keys == {
            "Table": TABLE_PAGE,
            "Snapshot": SNAPSHOT_PAGE,
            "Quarantined rows": QUARANTINE_PAGE,
            "Spark application": SPARK_PAGE,
        }
        assert sorted(task.extra_links) == sorted(keys)


@dataclass
class Announcing(FakeSubmitter):
    """Tells of an application, and notes the page that the running task then shows."""

    meanwhile: str = ""
    history: str = HISTORY

    def submit(self, job: SparkJob) -> None:
        told = SparkApplication("local-17", "http://worker:4040", history=self.history)
        job.announce(told)
        origin = job.work.origin
        self.meanwhile = shown(origin.run_id, origin.dag_id)[SPARK_PAGE]
        super().submit(job)


@pytest.mark.slow
@pytest.mark.usefixtures("airflow_db", "warehouse")
class TestRuns:
    @pytest.fixture
    def announcing(self, monkeypatch: pytest.MonkeyPatch) -> Announcing:
        submitter = Announcing()
        operator = "airflow_provider_merge.operators._shared.table_operator.TableOperator"
        monkeypatch.setattr(f"{operator}.get_submitter", lambda _: submitter)
        monkeypatch.setattr(f"{operator}.require_valid", lambda *_: None)
        return submitter

    def test_both_links(
        self,
        dag_file: Callable[..., DagFile],
        announcing: Announcing,
        warehouse: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        lake(monkeypatch, warehouse, ui_url=PAGE)
        run = dag_file(ONE).run()
        assert announcing.meanwhile == "http://worker:4040"
        found = shown(run.run_id, run.dag_id)
        assert found[SPARK_PAGE] == f"{HISTORY}/history/local-17/"
        assert found[SNAPSHOT_PAGE] == "https://lake.example/shop/t/orders?snapshot=8"

    def test_no_link_is_left_without_a_page_of_ones_own(
        self, dag_file: Callable[..., DagFile], announcing: Announcing
    ) -> None:
        announcing.history = ""
        run = dag_file(ONE).run()
        assert run.state == "success"
        assert announcing.meanwhile == "http://worker:4040"
        assert set(shown(run.run_id, run.dag_id).values()) == {""}

    def test_nothing_was_changed(
        self,
        dag_file: Callable[..., DagFile],
        announcing: Announcing,
        warehouse: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        lake(monkeypatch, warehouse, ui_url=PAGE)
        announcing.outcomes = [lambda r: committed(r, status="unchanged", new_snapshot_id=None)]
        run = dag_file(ONE).run()
        assert shown(run.run_id, run.dag_id)[SNAPSHOT_PAGE] == ""

    @pytest.mark.parametrize(
        ("sources", "page"),
        [
            ({"a": SourceMetrics(records=5)}, ""),
            (
                {
                    "a": SourceMetrics(),
                    "b": SourceMetrics(quarantined=2, quarantine="/bad/b.jsonl"),
                },
                "https://files.example/view?path=/bad/b.jsonl",
            ),
        ],
        ids=["none", "some"],
    )
    def test_quarantined_rows(
        self,
        dag_file: Callable[..., DagFile],
        announcing: Announcing,
        warehouse: Path,
        monkeypatch: pytest.MonkeyPatch,
        sources: dict[str, SourceMetrics],
        page: str,
    ) -> None:
        lake(monkeypatch, warehouse, **{"quarantine-url": FILES_PAGE})
        metrics = Metrics(sources=sources)
        announcing.outcomes = [lambda r: committed(r, metrics=metrics)]
        run = dag_file(ONE).run()
        assert shown(run.run_id, run.dag_id)[QUARANTINE_PAGE] == page

    def test_a_failed_job_has_its_application(
        self, dag_file: Callable[..., DagFile], announcing: Announcing
    ) -> None:
        announcing.outcomes, announcing.process_fails = [lambda _: None], True
        run = dag_file(ONE).run()
        assert run.state == "failed"
        assert shown(run.run_id, run.dag_id)[SPARK_PAGE] == f"{HISTORY}/history/local-17/"

    @pytest.mark.parametrize(
        ("outcome", "page"),
        [
            (committed, "&snapshot=8"),
            (lambda r: committed(r, status="unchanged", new_snapshot_id=None), "&snapshot=7"),
            (lambda _: None, "&until="),
        ],
        ids=["committed", "unchanged", "failed"],
    )
    def test_the_table_in_airflows_ui(
        self,
        dag_file: Callable[..., DagFile],
        announcing: Announcing,
        monkeypatch: pytest.MonkeyPatch,
        outcome: Callable[..., Any],
        page: str,
    ) -> None:
        monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://air.example/flow")
        announcing.outcomes = [outcome]
        announcing.process_fails = outcome(example_request()) is None
        run = dag_file(ONE).run()
        task = TaskInstanceKey(run.dag_id, "merge", run.run_id)
        found = XComOperatorLink(name="link", xcom_key=TABLE_PAGE).get_link(None, ti_key=task)  # type: ignore[arg-type]
        table = "/flow/lakehouse/table?connection=paimon_default&database=shop&table=orders"
        assert found.startswith(f"{table}{page}")

    def test_a_wrong_page_fails_no_task(
        self,
        dag_file: Callable[..., DagFile],
        announcing: Announcing,
        warehouse: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        lake(monkeypatch, warehouse, **{"ui_url": "lake.example", "quarantine-url": "{path}"})
        metrics = Metrics(sources={"a": SourceMetrics(quarantined=1, quarantine="/bad/a.jsonl")})
        announcing.outcomes = [lambda r: committed(r, metrics=metrics)]
        run = dag_file(ONE).run()
        assert run.state == "success"
        found = shown(run.run_id, run.dag_id)
        assert (found[SNAPSHOT_PAGE], found[QUARANTINE_PAGE]) == ("", "")


def shown(run_id: str, dag_id: str, task_id: str = "merge") -> dict[str, Any]:
    """What the server shows, by the link's XCom."""
    task = TaskInstanceKey(dag_id, task_id, run_id)
    links = [XComOperatorLink(name="link", xcom_key=key) for key in KEYS]
    return {link.xcom_key: link.get_link(None, ti_key=task) for link in links}  # type: ignore[arg-type]
