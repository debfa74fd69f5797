"""Wrong input of care for many tables: found when the DAG is parsed, or before Spark is started."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_merge.operators.table_care import TableCareOperator
from spark_jobs.errors import RequestError
from tests.airflow.cared_tables import Tries, table
from tests.airflow.support import FakeSubmitter

WRONG = {
    "no pattern": ({"tables": "orders"}, "tables: 'orders' is not a pattern of tables"),
    "a path": ({"tables": ["a/b.c"]}, r"tables\[0\]: 'a/b.c' is not a pattern"),
    "a part is missing": ({"tables": "shop."}, "tables: 'shop.' is not a pattern of tables"),
    "a branch": ({"exclude": ["s.t", "s.t$branch_b"]}, r"exclude\[1\]: .* names a branch"),
    "a number": ({"tables": 7}, "tables: expected text or a list of texts, found int"),
    "a number in a list": ({"tables": [7]}, r"tables\[0\]: expected text, found int"),
    "an action": ({"actions": ["vacuum"]}, r"actions\[0\]: 'vacuum' is not one of: compact, exp"),
    "no action": ({"actions": [["x"]]}, r"actions\[0\]: .* is not one of: compact, exp"),
    "a text of actions": ({"actions": "compact"}, "actions: expected a list, found str"),
    "no unit": ({"max_bytes": "100"}, "max_bytes: '100' has no unit"),
    "no time": ({"max_seconds": 0}, "max_seconds: 0 is not a positive whole number"),
    "none at a time": ({"max_parallel": 0}, "max_parallel: 0 is not a positive whole number"),
    "an age": ({"older_than": "soon"}, "older_than: 'soon' is neither a duration"),
    "an age of orphans": ({"orphans_older_than": "1"}, "orphans_older_than: '1' has no unit"),
    "limits": ({"retain_min": 5, "retain_max": 3}, "retain_min: 5 is more than retain_max, 3"),
    "a policy": ({"on_failure": "stop"}, "on_failure: 'stop' is not one of: fail, warn"),
    "twice": ({"more_catalogs": ["paimon_default"]}, r"more_catalogs\[0\]: .* is named twice"),
    "a text of catalogs": ({"more_catalogs": "a"}, "more_catalogs: expected a list of connection"),
    "no plan": ({"plan": "soon"}, "plan: is not the plan of a dry run"),
    "a plan of nothing": ({"plan": {"status": "x"}}, "plan: is not the plan of a dry run"),
    "a plan and patterns": (
        {"plan": {"tables": []}, "tables": "a.*"}, "tables: cannot be combined with plan"
    ),
    "a plan and a dry run": (
        {"plan": {"tables": []}, "dry_run": True}, "plan: cannot be combined with dry_run"
    ),
    "a wrong step": (
        {"plan": {"tables": [{"catalog": "a", "table": "b.c", "read": "1"}]}},
        r"plan.tables\[0\].read: '1' is not a int",
    ),
    "a step of another kind": (
        {"plan": {"tables": [{"catalog": "a", "table": "b.c", "action": "drop"}]}},
        r"plan.tables\[0\].action: 'drop' is unknown",
    ),
    "a step without a table": (
        {"plan": {"tables": [{"catalog": "a"}]}}, r"plan.tables\[0\].table: missing"
    ),
    "an unknown field": (
        {"plan": {"tables": [{"catalog": "a", "table": "b.c", "do": "x"}]}},
        r"plan.tables\[0\].do: is unknown",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "problem"), WRONG.values(), ids=WRONG)
def test_wrong_input_is_named_when_the_dag_is_parsed(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(RequestError, match=problem) as raised:
        TableCareOperator(task_id="t", **given)
    assert raised.value.places[0] == "task 't'"


LATER = {
    "a typo": ({"tables": ["shop.*", "shp.*"]}, r"tables: 'shp\.\*' fits no table"),
    "no connection": ({"more_catalogs": ["nowhere"]}, "there is no connection 'nowhere'"),
    "another catalog": (
        {"plan": {"tables": [{"catalog": "x", "table": "shop.a", "action": "compact"}]}},
        "plan: is for the catalog x, but this task is for paimon_default",
    ),
    "another action": (
        {
            "plan": {"tables": [{"catalog": "paimon_default", "table": "shop.a",
                                 "action": "remove_orphan_files"}]},
        },
        "plan: has the action remove_orphan_files, which is not among: compact, expire_snapshots",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "problem"), LATER.values(), ids=LATER)
def test_wrong_input_that_only_a_run_shows(
    warehouse: Path, submitter: FakeSubmitter, given: dict[str, Any], problem: str
) -> None:
    table(warehouse, "small", files=6)
    with pytest.raises(Exception, match=problem) as raised:
        Tries().run(**given)
    assert type(raised.value).__name__ == "FinalFailure"
    assert submitter.jobs == []


def test_one_catalog_by_two_names_is_one(
    warehouse: Path, submitter: FakeSubmitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", os.environ["AIRFLOW_CONN_PAIMON_DEFAULT"])
    with pytest.raises(
        Exception, match="more_catalogs: 'other' is the catalog of 'paimon_default'"
    ):
        Tries().run(more_catalogs=["other"])


def test_a_catalog_that_cannot_be_read_is_an_error_at_once(
    warehouse: Path, submitter: FakeSubmitter
) -> None:
    warehouse.rmdir()
    with pytest.raises(Exception, match="WAREHOUSE_NOT_FOUND"):
        Tries().run(dry_run=True)
