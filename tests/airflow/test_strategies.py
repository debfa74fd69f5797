"""The blocks of docs/strategies.md are one DAG: each strategy is one statement, one snapshot."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_jobs.contract.inserts import InsertIntoSpec, InsertOverwriteSpec
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.statements import MergeSpec
from tests.airflow.support import DagFile, FakeSubmitter

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("airflow_db", "warehouse")]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "strategies.md"


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_each_strategy_is_one_statement(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    file = dag_file("\n".join(_blocks("python")))
    for text in _blocks("sql"):
        path = file.path.parent / text.partition("\n")[0].removeprefix("-- ")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    assert file.run().state == "success"

    asked = {each.work.origin.task_id: each.work for each in submitter.jobs if _is_one(each.work)}
    kinds = {name: type(each.statement) for name, each in asked.items()}
    assert kinds == {
        "merge": MergeSpec,
        "apply_events": MergeSpec,
        "append": InsertIntoSpec,
        "insert_only": MergeSpec,
        "insert_overwrite": InsertOverwriteSpec,
        "replace": InsertOverwriteSpec,
        "delete_insert": MergeSpec,
        "replace_where": MergeSpec,
        "microbatch": InsertOverwriteSpec,
        "lookback": InsertOverwriteSpec,
        "scd2": MergeSpec,
    }
    statement = asked["lookback"].statement
    assert isinstance(statement, InsertOverwriteSpec)
    days = [each["day"] for each in statement.expected_partitions or ()]
    assert len(set(days)) == 2


def _is_one(work: object) -> bool:
    return isinstance(work, JobRequest)
