"""Shares are what somebody wrote, whatever floating numbers make of them."""

from __future__ import annotations

import pytest

from airflow_provider_merge.operators.delete_from import DeleteFromOperator
from spark_jobs.contract.guards import Guards, Limit
from spark_jobs.errors import RequestError


@pytest.mark.parametrize("tenths", [1, 7, 70, 140, 280, 290, 550, 570, 580, 999])
def test_a_share_of_a_thousand_is_a_whole_number(tenths: int) -> None:
    task = DeleteFromOperator(
        task_id="t", target="a.b", where="x", max_deleted_rows=f"{tenths // 10}.{tenths % 10}%"
    )
    guards = task.guards()

    assert guards is not None
    assert guards.max_deleted_rows is not None
    assert guards.max_deleted_rows.of(1000) == tenths


def test_a_limit_is_a_number_or_a_share() -> None:
    with pytest.raises(RequestError, match="either a number or a share"):
        Limit(1, 0.5)
    with pytest.raises(RequestError, match="max_deleted_share"):
        Guards(max_deleted_share=1.5)
