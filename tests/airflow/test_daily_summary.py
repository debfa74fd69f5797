"""The example DAGs that overwrite partitions: what each kind of run replaces, and its form."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_provider_merge.operators.insert_overwrite import InsertOverwriteOperator
from dags_examples import daily_summary
from spark_jobs.contract.inserts import InsertOverwriteSpec
from tests.airflow.conftest import HOME
from tests.airflow.contexts import context_of
from tests.airflow.support import FakeSubmitter, committed

EXAMPLE = Path(daily_summary.__file__)
DAY = datetime(2013, 1, 31, tzinfo=UTC)
REPAIR = daily_summary.repair.dag_id


def statement_of(dag: DAG, **run: Any) -> tuple[InsertOverwriteSpec, Any | str]:
    """The statement and the query of a run's overwrite, rendered by Airflow."""
    (task,) = (each for each in dag.tasks if isinstance(each, InsertOverwriteOperator))
    # Rendering changes the task.
    copy = task.prepare_for_execution()
    copy.render_template_fields(context_of(copy, **run))
    return copy.statement(), copy.request_sources()[-1].query


def test_a_scheduled_run_replaces_its_month() -> None:
    month = datetime(2013, 1, 1, tzinfo=UTC)
    statement, query = statement_of(daily_summary.monthly, run_type="scheduled", logical_date=month)

    assert (statement.mode, statement.partition) == ("static", {"month": "'2013-01'"})
    assert "flight_date >= DATE '2013-01-01'" in query


def test_a_run_of_a_backfill_replaces_its_day() -> None:
    statement, query = statement_of(
        daily_summary.backfill, run_type="backfill", logical_date=DAY, conf={"day": "2012-01-01"}
    )

    assert statement.mode == "static"
    assert statement.partition == {"month": "'2013-01'", "flight_date": "'2013-01-31'"}
    assert "flight_date = DATE '2013-01-31'" in query


@pytest.mark.parametrize("mode", ["dynamic", "static"])
def test_a_repair_replaces_the_month_of_the_form(mode: str) -> None:
    conf = {"month": "2013-02-05", "mode": mode}
    statement, query = statement_of(daily_summary.repair, logical_date=DAY, conf=conf)

    assert statement.mode == mode
    # A full partition would be cleared in mode dynamic too.
    assert statement.partition == {"month": "'2013-02'"}
    assert "flight_date >= DATE '2013-02-01'" in query


def test_the_form_of_a_repair() -> None:
    params = daily_summary.repair.params
    schemas = {name: params.get_param(name).schema for name in params}

    assert schemas["month"]["format"] == "date"
    assert schemas["mode"]["enum"] == ["dynamic", "static"]
    assert schemas["dry_run"]["type"] == "boolean"
    assert params["dry_run"] is True, "a click without a thought changes nothing"


@pytest.mark.parametrize(
    "conf", [{"month": "2013-02-30"}, {"month": None}, {"mode": "table"}, {"dry_run": "perhaps"}]
)
def test_the_form_takes_nothing_else(conf: dict[str, Any]) -> None:
    (task,) = daily_summary.repair.tasks

    with pytest.raises(Exception, match="Invalid input for param"):
        context_of(task, conf=conf)


@pytest.mark.usefixtures("airflow_db", "warehouse")
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_repair_runs(dry_run: bool, submitter: FakeSubmitter) -> None:
    if dry_run:
        submitter.outcomes = [lambda request: committed(request, status="dry_run")]
    copy = HOME / "dags" / EXAMPLE.name
    shutil.copyfile(EXAMPLE, copy)
    try:
        run = daily_summary.repair.test(run_conf={"month": "2013-01-05", "dry_run": dry_run})
    finally:
        copy.unlink()

    assert run.state == "success"
    assert submitter.request.dry_run is dry_run
