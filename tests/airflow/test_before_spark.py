"""Rendered values and connections are checked before Spark starts; secrets are seen nowhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.models.taskinstance import TaskInstance

from tests.airflow.support import PASSWORD, DagFile, FakeSubmitter, connection

pytestmark = pytest.mark.usefixtures("airflow_db")

MERGE = """
MergeIntoOperator(
    task_id="merge",
    target="shop.{{ params.table }}",
    source=file_source("{{ params.path }}", "csv"),
    on="{{ params.on }}",
    when=[when_matched("{{ params.condition }}").delete()],
    cardinality="{{ params.cardinality }}",
    retries=1,
)
"""
GOOD = {
    "table": "orders",
    "path": "/x",
    "on": "t.id = s.id",
    "condition": "s.gone",
    "cardinality": "strict",
}
WRONG = {
    "table": ({"table": ""}, "target: 'shop.' is not a table name"),
    "path": ({"path": ""}, "source.path: is empty"),
    "on": ({"on": ""}, "on: is empty"),
    "alias": ({"on": "t.id = u.id"}, "on: unknown alias 'u'"),
    "condition": ({"condition": ""}, "when[0].condition: is empty"),
    "cardinality": ({"cardinality": "lax"}, "cardinality: 'lax' is not one of"),
}


@pytest.mark.parametrize(("change", "message"), WRONG.values(), ids=WRONG)
def test_rendered_values(
    dag_file: Callable[..., DagFile],
    submitter: FakeSubmitter,
    warehouse: Path,
    capsys: pytest.CaptureFixture[str],
    change: dict[str, str],
    message: str,
) -> None:
    run = dag_file(MERGE, arguments=f"params={ {**GOOD, **change} }").run()
    (ti,) = run.get_task_instances()
    assert (ti.state, ti.try_number) == ("failed", 1), "a final error is not retried"
    assert submitter.jobs == []
    assert message in capsys.readouterr().out.replace("\\'", "'")


@pytest.mark.parametrize(
    ("extra", "message"),
    [({}, "warehouse: is empty"), ({"warehouse": "lake"}, "is not an absolute path or URI")],
    ids=["none", "relative"],
)
def test_warehouse(
    dag_file: Callable[..., DagFile],
    submitter: FakeSubmitter,
    warehouse: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    extra: dict[str, str],
    message: str,
) -> None:
    connection(monkeypatch, "paimon_default", conn_type="paimon", extra=extra)
    run = dag_file(MERGE, arguments=f"params={GOOD}").run()
    assert run.state == "failed"
    assert submitter.jobs == []
    log = capsys.readouterr().out.replace("\\'", "'")
    assert "connection 'paimon_default', warehouse: " in log
    assert message in log


def test_warehouse_that_does_not_exist(
    dag_file: Callable[..., DagFile],
    submitter: FakeSubmitter,
    warehouse: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    warehouse.rmdir()
    run = dag_file(MERGE, arguments=f"params={GOOD}").run()
    (ti,) = run.get_task_instances()
    assert (ti.state, ti.try_number) == ("failed", 1)
    assert submitter.jobs == []
    assert f"WAREHOUSE_NOT_FOUND: the warehouse {warehouse} is not" in capsys.readouterr().out


def test_missing_spark_connection(
    dag_file: Callable[..., DagFile],
    warehouse: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT")
    run = dag_file(MERGE, arguments=f"params={GOOD}").run()
    (ti,) = run.get_task_instances()
    assert (ti.state, ti.try_number) == ("failed", 1)
    log = capsys.readouterr().out.replace("\\'", "'")
    assert "spark_conn_id: there is no connection 'spark_default'" in log


def test_planted_password_is_only_in_the_credentials(
    dag_file: Callable[..., DagFile],
    submitter: FakeSubmitter,
    warehouse: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    extra = {"warehouse": str(warehouse), "options": {"fs.s3.securityToken": PASSWORD}}
    connection(monkeypatch, "paimon_default", conn_type="paimon", password=PASSWORD, extra=extra)
    run = dag_file(MERGE, arguments=f"params={GOOD}").run()
    assert run.state == "success"
    (job,) = submitter.jobs
    assert PASSWORD in job.credentials.values()
    assert PASSWORD not in job.work.to_json()
    assert PASSWORD not in capsys.readouterr().out
    (ti,) = run.get_task_instances()
    assert PASSWORD not in json.dumps(ti.xcom_pull(task_ids="merge"))
    assert PASSWORD not in json.dumps(_rendered_fields(ti))


def test_parsing_asks_for_no_connection(
    dag_file: Callable[..., DagFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a DAG file must not look up connections")

    monkeypatch.setattr("airflow.sdk.bases.hook.BaseHook.get_connection", refuse)
    file = dag_file(MERGE, arguments=f"params={GOOD}")
    assert file.dag().task_ids == ["merge"]
    file.path.unlink()


def test_serialised_dag_keeps_the_clauses(dag_file: Callable[..., DagFile]) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    file = dag_file(MERGE, arguments=f"params={GOOD}")
    dag = DagSerialization.from_dict(json.loads(json.dumps(DagSerialization.to_dict(file.dag()))))
    file.path.unlink()
    (clause,) = dag.task_dict["merge"].when
    assert clause == {
        "when": "matched",
        "condition": "{{ params.condition }}",
        "action": {"kind": "delete"},
    }


def _rendered_fields(ti: TaskInstance) -> dict[str, Any] | None:
    from airflow.models.renderedtifields import RenderedTaskInstanceFields

    return RenderedTaskInstanceFields.get_templated_fields(ti)
