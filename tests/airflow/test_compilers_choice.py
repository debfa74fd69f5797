"""Which compilers of Java a run of a task gets, from what its last run took."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest

from spark_jobs.contract.result import JobResult, Metrics
from tests.airflow.support import DagFile, FakeSubmitter, committed

pytestmark = pytest.mark.usefixtures("airflow_db", "warehouse")

MERGE = """
MergeIntoOperator(
    task_id="merge", target="shop.orders", source=table_source("shop.changes"),
    on="t.id = s.id", when=[when_matched().delete()],
)
"""
TWO = """
StatementsOperator(
    task_id="merge",
    statements=[
        delete_from("first", target="shop.orders", where="id = 1"),
        delete_from("second", target="shop.orders", where="id = 2"),
    ],
)
"""


def took(**seconds: Any) -> Callable[[Any], JobResult]:
    return lambda request: committed(request, metrics=Metrics(seconds=seconds))


def runs(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter, body: str, outcomes: list[Any]
) -> list[Any]:
    """Run the same DAG on one day after the other; which runs had both compilers."""
    submitter.outcomes[:] = outcomes
    file = dag_file(body)
    text = file.path.read_text()
    jobs = len(submitter.jobs)
    while len(submitter.jobs) - jobs < 4:
        file.path.write_text(text)
        day = dt.datetime(2024, 1, 1 + len(submitter.jobs), tzinfo=dt.UTC)
        assert file.run(logical_date=day).state == "success"
    return [job.both_compilers for job in submitter.jobs[jobs:]]


def test_a_long_query_of_the_source_gets_both_next_time(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    outcomes = [took(source=6.1), took(source=3.1), took(source=2.9), took(source=5.9)]
    assert runs(dag_file, submitter, MERGE, outcomes) == [False, True, True, False]


def test_a_long_write_gets_both_next_time(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    outcomes = [took(write=31), took(write=14), took(write=29), took()]
    assert runs(dag_file, submitter, MERGE, outcomes) == [False, True, False, False]


def test_statements_of_one_application_count_together(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    outcomes = [took(source=4), took(source=4), took(source=1)]
    assert runs(dag_file, submitter, TWO, outcomes) == [False, True, False, False]


def test_the_first_run_asks_for_nothing_that_is_not_there(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter, capsys: pytest.CaptureFixture[str]
) -> None:
    submitter.outcomes = [took(source=1)]

    assert dag_file(MERGE).run().state == "success"

    assert "XCom not found" not in capsys.readouterr().out
