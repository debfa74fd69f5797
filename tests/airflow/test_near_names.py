"""What errors say of names that are chosen from a list, of nothing and of values of other types."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_merge.checks.relations import Relation
from airflow_provider_merge.checks.statements import StatementCheck
from airflow_provider_merge.operators.delete_from import DeleteFromOperator
from airflow_provider_merge.operators.insert_overwrite import InsertOverwriteOperator
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.scd2 import Scd2Operator
from airflow_provider_merge.operators.sources import cdc_source, deduplicate, table_source
from spark_jobs.contract.checks import did_you_mean
from spark_jobs.errors import JobError

_VALUES = {"insert": "c", "update": "u", "delete": "d"}
_FEED = table_source("shop.feed")


def _scd2(**given: Any) -> Scd2Operator:
    usual = {"target": "a.b", "source": _FEED, "keys": ["id"], "as_of": "2026-01-31"}
    return Scd2Operator(task_id="t", **{**usual, **given})


def _merge(source: Any, **given: Any) -> MergeIntoOperator:
    return MergeIntoOperator(task_id="t", target="a.b", source=source, **given)


@pytest.mark.parametrize(
    ("make", "meant"),
    [
        (lambda: _scd2(hard_deletes="closed"), "close"),
        (lambda: _scd2(corrections="overwite"), "overwrite"),
        (lambda: _merge(cdc_source(_FEED, keys=["id"], format="debesium")), "debezium"),
        (lambda: _scd2(source={**deduplicate(_FEED, by=["id"]), "order": ["n"]}), "order_by"),
        (
            lambda: _merge(
                cdc_source(_FEED, keys=["id"], sequence=["n"], values={**_VALUES, "updates": "x"})
            ),
            "update",
        ),
        (
            lambda: InsertOverwriteOperator(task_id="t", target="a.b", source=_FEED, mode="dynamc"),
            "dynamic",
        ),
    ],
)
def test_the_nearest_name_is_told(make: Any, meant: str) -> None:
    with pytest.raises(JobError, match=rf"Did you mean {meant}\?"):
        make()


def test_only_names_that_are_near_are_told() -> None:
    assert did_you_mean("OVERWRIT", ["fail", "overwrite"]) == "Did you mean overwrite?"
    assert did_you_mean("nothing", ["fail", "overwrite"]) == ""
    assert did_you_mean(7, ["fail"]) == did_you_mean("f" * 10_000, ["fail"]) == ""


def test_what_has_no_default_is_not_to_be_left_out() -> None:
    with pytest.raises(JobError, match=r"keys: is None Remedy: Give it a value: it has no default"):
        _scd2(keys=None)
    with pytest.raises(JobError, match=r"target: is None Remedy: Give it a value: it has no defa"):
        DeleteFromOperator(task_id="t", target=None, where="TRUE")
    with pytest.raises(JobError, match=r"current: is None Remedy: .*only then its default applies"):
        _scd2(current=None)


@pytest.mark.parametrize(
    ("value", "remedy"), [(["a"], "Give one text"), ({"a": 1}, "Give one text"), (7, "quotes: '7'")]
)
def test_quotes_are_a_remedy_only_for_what_has_a_text(value: Any, remedy: str) -> None:
    with pytest.raises(JobError, match=f"current: expected text, found .*{remedy}"):
        _scd2(current=value)


def test_clauses_that_nobody_wrote_have_no_number() -> None:
    source = cdc_source(_FEED, keys=["id"], sequence=["lsn"], values=_VALUES)
    spec = _merge(source).statement()
    rows = Relation(spec.source, "the source", {"id": "", "lsn": "", "_change_type": ""})
    target = Relation("", "a.b", {"id": "BIGINT", "lsn": "BIGINT", "v": "STRING"})
    with pytest.raises(JobError, match="events that update rows") as caught:
        StatementCheck(target, {spec.source: rows}).statement(spec)
    assert "clause" not in str(caught.value)
