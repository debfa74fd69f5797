"""A guard that is misspelt, or given to the wrong task, is named: it would guard nothing."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest
from airflow.sdk import DAG, BaseOperator

from airflow_provider_merge import operators, sensors
from airflow_provider_merge.operators._shared.misspelt import refuse_misspelt
from airflow_provider_merge.operators.delete_from import DeleteFromOperator
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.query import QueryOperator
from airflow_provider_merge.operators.statement_list import delete_from
from airflow_provider_merge.operators.statements import StatementsOperator
from airflow_provider_merge.parameters import ParameterOperator
from spark_jobs.contract.guards import MEANT_FOR
from spark_jobs.errors import RequestError

_MERGE = "MERGE INTO a.b t USING a.c s ON t.id = s.id WHEN MATCHED THEN DELETE"
_LISTED = delete_from("gone", target="a.b", where="id = 1")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("max_deleted_row", "max_deleted_rows"),
        ("max_rows_deleted", "max_deleted_rows"),
        ("maxDeletedRows", "max_deleted_rows"),
        ("min_source_row", "min_source_rows"),
        ("max_bytes_rewriten", "max_bytes_rewritten"),
        ("expected_partition", "expected_partitions"),
        ("on_schema_changes", "on_schema_change"),
    ],
)
def test_a_misspelt_default_is_named(name: str, meant: str) -> None:
    with (
        pytest.raises(RequestError, match=f"task 't': default_args.{name}: .*Write {meant}"),
        DAG("d", schedule=None, default_args={name: 1}),
    ):
        MergeIntoOperator(task_id="t", sql=_MERGE)


def test_a_list_names_those_that_would_guard_its_statements() -> None:
    with (
        pytest.raises(
            RequestError, match=r"default_args.max_deleted_row: .*Write max_deleted_rows"
        ),
        DAG("d", schedule=None, default_args={"max_deleted_row": 1}),
    ):
        StatementsOperator(task_id="t", statements=[_LISTED])


def test_names_of_others_pass() -> None:
    defaults: dict[str, Any] = {
        "max_inserted_row": 5,  # DELETE has no such guard, however it is spelt
        "max_retry_delay": None,
        "max_active_tis_per_dag": 3,
        "max_rows": 7,
        "check": "all_true",
        "min_file_process_interval": 1,
    }
    with DAG("d", schedule=None, default_args=defaults):
        DeleteFromOperator(task_id="t", target="a.b", where="id = 1")
        QueryOperator(task_id="q", sql="SELECT true AS fine")
    with DAG("e", schedule=None, default_args={"max_deleted_row": 5}):
        QueryOperator(task_id="q", sql="SELECT true AS fine")


def test_no_parameter_of_airflow_or_of_this_provider_looks_misspelt() -> None:
    names = {*inspect.signature(BaseOperator.__init__).parameters, *_all_parameters()}
    refuse_misspelt(dict.fromkeys(names), {*MEANT_FOR, "on_schema_change"})


@pytest.mark.parametrize("name", ["max_deleted_rows", "checks", "approved", "on_schema_change"])
def test_what_belongs_to_a_statement_is_not_for_the_task(name: str) -> None:
    more: dict[str, Any] = {name: 1}
    with pytest.raises(RequestError, match=f"task 't': {name}: belongs to a statement .*sql_state"):
        StatementsOperator(task_id="t", sql="DELETE FROM a.b WHERE id = 1", **more)


def test_defaults_guard_each_statement_of_a_text() -> None:
    text = "DELETE FROM a.b WHERE id = 1; DELETE FROM a.c WHERE id = 2"
    defaults = {"max_deleted_rows": 7}
    operator = StatementsOperator(task_id="t", sql=text, default_args=defaults)
    guards = [each.guards() for each in operator._known_operators().values()]
    assert [str(each and each.max_deleted_rows) for each in guards] == ["7", "7"]


def _all_parameters() -> Iterator[str]:
    for package in (operators, sensors):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    kinds: list[type[ParameterOperator]] = [ParameterOperator]
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        yield from kind.parameter_names
