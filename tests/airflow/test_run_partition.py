"""Which partition a run is for, in the contexts that Airflow makes for tasks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_3_PLUS
from airflow.sdk import (
    DAG,
    BaseOperator,
    CronDataIntervalTimetable,
    MultipleCronTriggerTimetable,
    Param,
)
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_merge.operators.truncate_table import TruncateTableOperator
from airflow_provider_merge.run_partition import run_partition
from airflow_provider_merge.sensors.partition import PartitionSensor
from tests.airflow.contexts import context_of
from tests.airflow.support import DagFile, FakeSubmitter

DAY = datetime(2026, 1, 31, tzinfo=UTC)
TEMPLATE = "{{ run_partition('day') }}"
FORM = {"day": Param(None, type=["null", "string"], format="date")}


def task_of(
    operator: type[BaseOperator] = TruncateTableOperator,
    params: dict[str, Any] = FORM,
    **arguments: Any,
) -> Any:
    with DAG("d", schedule=None, start_date=DAY, params=params, **arguments):
        if operator is TruncateTableOperator:
            return operator(task_id="t", target="a.b", partition={"day": TEMPLATE})
        return operator(task_id="t")


def rendered(task: Any, **run: Any) -> Any:
    task.render_template_fields(context_of(task, **run))
    return task.partition["day"]


CONF = {"day": "2026-01-02"}
RUNS = [
    ({"partition_key": "2026-01", "conf": CONF}, "2026-01"),
    ({"partition_key": "2026-01", "logical_date": DAY, "run_type": "scheduled"}, "2026-01"),
    ({"run_type": "scheduled", "logical_date": DAY}, "2026-01-31"),
    ({"run_type": "backfill", "logical_date": DAY, "conf": CONF}, "2026-01-31"),
    ({"run_type": "manual", "conf": CONF}, "2026-01-02"),
    # The form sends a logical date of its own beside what was chosen.
    ({"run_type": "manual", "logical_date": DAY, "conf": CONF}, "2026-01-02"),
    pytest.param(
        {"run_type": "operator_triggered", "conf": CONF},
        "2026-01-02",
        marks=pytest.mark.skipif(not AIRFLOW_V_3_3_PLUS, reason="a kind of run of Airflow 3.3"),
    ),
    ({"run_type": "manual", "logical_date": DAY}, "2026-01-31"),
]
DEFAULT = {"day": Param("2026-11-10", type="string", format="date")}


@pytest.mark.parametrize("form", [FORM, DEFAULT], ids=["no default", "default"])
@pytest.mark.parametrize(("run", "expected"), RUNS)
def test_the_first_that_a_run_has(
    run: dict[str, Any], expected: str, form: dict[str, Param]
) -> None:
    assert rendered(task_of(params=form), **run) == expected


@pytest.mark.parametrize(
    ("form", "conf"), [(FORM, {}), (FORM, {"day": None}), (DEFAULT, {}), (DEFAULT, {"other": 1})]
)
@pytest.mark.parametrize("run_type", ["manual", "scheduled", "asset_triggered"])
def test_a_run_that_has_none_fails_and_says_what_to_do(
    form: dict[str, Param], conf: dict[str, Any], run_type: str
) -> None:
    with pytest.raises(AirflowFailException) as raised:
        rendered(task_of(params={**form, "other": 0}), conf=conf, run_type=run_type)

    assert "no partition key, no logical date and no chosen parameter 'day'" in str(raised.value)
    assert "Remedy: Trigger it with a partition key, a logical date, or" in str(raised.value)


@pytest.mark.parametrize("value", [True, 1.5, ["2026-01-02"], {"a": 1}])
def test_a_parameter_that_names_no_partition(
    value: bool | float | list[str] | dict[str, int],
) -> None:
    task = task_of(params={"day": Param(None)})

    with pytest.raises(AirflowFailException, match="not text, a whole number or a date"):
        rendered(task, conf={"day": value})


@pytest.mark.parametrize("number", [8, 0])
def test_a_number(number: int) -> None:
    task = task_of(params={"day": Param(7, type="integer")})

    assert rendered(task, conf={"day": number}) == str(number)


def test_other_operators_have_it_as_a_macro_of_the_dag() -> None:
    class Other(BaseOperator):
        template_fields = ("text",)

        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.text = TEMPLATE

    task = task_of(Other, user_defined_macros={"run_partition": run_partition})
    task.render_template_fields(context_of(task, conf=CONF))

    assert task.text == "2026-01-02"


def test_python_code_gives_it_the_context() -> None:
    assert run_partition(context_of(task_of(), conf=CONF), "day") == "2026-01-02"


def test_a_test_of_a_dag_is_for_its_date(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter, warehouse: Path, airflow_db: None
) -> None:
    """``airflow dags test`` makes a manual run."""
    body = """
    TruncateTableOperator(
        task_id="t", target="a.b", partition={"day": "{{ run_partition('day') }}"}
    )
    """
    run = dag_file(body, arguments='params={"day": "2026-11-10"}').run(logical_date=DAY)

    assert run.state == "success"
    assert submitter.request.statement.partition == {"day": "'2026-01-31'"}


def test_mapped_operators_have_it(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter, warehouse: Path, airflow_db: None
) -> None:
    body = """
    TruncateTableOperator.partial(
        task_id="t", partition={"day": "{{ run_partition('day') }}"}
    ).expand(target=["a.b", "a.c"])
    """
    run = dag_file(body, arguments='params={"day": "2026-11-10"}').run(run_conf=CONF)

    assert run.state == "success"
    partitions = [job.work.statement.partition for job in submitter.jobs]
    assert partitions == [{"day": "'2026-01-02'"}] * 2


# Midnight of the first of February in Berlin, the evening before in UTC.
MIDNIGHT = datetime(2026, 1, 31, 23, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
ZONES = {
    "of the timetable": {"schedule": CronDataIntervalTimetable("@daily", timezone="Europe/Berlin")},
    "of several crons": {
        "schedule": MultipleCronTriggerTimetable("@daily", "@weekly", timezone="Europe/Berlin")
    },
    "of the DAG": {"schedule": "@daily", "start_date": datetime(2026, 1, 1, tzinfo=BERLIN)},
    "of a DAG without a schedule": {"start_date": datetime(2026, 1, 1, tzinfo=BERLIN)},
}


@pytest.mark.parametrize("run_type", ["scheduled", "backfill", "manual"])
@pytest.mark.parametrize("arguments", ZONES.values(), ids=ZONES)
def test_the_day_is_that_of_the_dags_time_zone(arguments: dict[str, Any], run_type: str) -> None:
    run = {"logical_date": MIDNIGHT, "run_type": run_type}
    given = {"schedule": None, "start_date": DAY, **arguments}
    for template, day in (
        ("{{ run_partition() }}", "02-01"),
        ("{{ run_partition(tz='UTC') }}", "01-31"),
    ):
        with DAG("d", **given):
            task = TruncateTableOperator(task_id="t", target="a.b", partition={"day": template})
        assert rendered(task, **run) == f"2026-{day}"


def test_a_timetables_zone_comes_before_that_of_the_dag() -> None:
    schedule = CronDataIntervalTimetable("@daily", timezone="UTC")
    start = datetime(2026, 1, 1, tzinfo=BERLIN)
    with DAG("d", schedule=schedule, start_date=start):
        task = TruncateTableOperator(task_id="t", target="a.b", partition={"day": TEMPLATE})
    assert rendered(task, logical_date=MIDNIGHT, run_type="scheduled") == "2026-01-31"


def test_an_unknown_time_zone() -> None:
    with pytest.raises(AirflowFailException, match="'Mars' is not a time zone"):
        run_partition(context_of(task_of(), logical_date=DAY), tz="Mars")


def test_sensors_have_it() -> None:
    with DAG("d", schedule=None, start_date=DAY):
        sensor = PartitionSensor(task_id="t", table="a.b", partition={"day": TEMPLATE})
    assert rendered(sensor, conf=CONF) == "2026-01-02"


def test_a_template_without_its_context(tmp_path: Path) -> None:
    (tmp_path / "m.sql").write_text("{% macro day() %}{{ run_partition('day') }}{% endmacro %}")
    asked = []
    for context in ("", " with context"):
        partition = {"day": f"{{% import 'm.sql' as m{context} %}}{{{{ m.day() }}}}"}
        with DAG("d", schedule=None, start_date=DAY, template_searchpath=str(tmp_path)):
            task = TruncateTableOperator(task_id="t", target="a.b", partition=partition)
        asked.append(task)
    with pytest.raises(AirflowFailException, match="the template has no context"):
        rendered(asked[0], conf=CONF)
    assert rendered(asked[1], conf=CONF) == "2026-01-02"
