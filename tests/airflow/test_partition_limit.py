"""How many partitions a statement may add: what its task says, else Airflow's configuration."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from airflow_provider_merge.operators._shared.configured_limits import limited
from spark_jobs.contract.options import JobOptions
from spark_jobs.errors import RequestError
from tests.airflow.support import DagFile, FakeSubmitter

VARIABLE = "AIRFLOW__MERGE__MAX_NEW_PARTITIONS"


@pytest.mark.usefixtures("airflow_db", "warehouse", "iceberg_catalog")
@pytest.mark.parametrize(("own", "most"), [("", 7), ("max_new_partitions='{{ 1 + 2 }}'", 3)])
@pytest.mark.parametrize("conn_id", ["paimon_default", "iceberg_default"])
def test_the_request_has_it(
    conn_id: str,
    own: str,
    most: int,
    dag_file: Callable[..., DagFile],
    submitter: FakeSubmitter,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, "7")
    body = f"""
        UpdateOperator(task_id="t", target="shop.orders", set={{"a": "1"}}, where="b",
            catalog_conn_id={conn_id!r}, {own})
    """

    assert dag_file(body).run().state == "success"

    assert submitter.request.options.max_new_partitions == most


def test_a_wrong_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "many")

    with pytest.raises(RequestError, match=r"\[merge\] max_new_partitions: 'many' is not a"):
        limited(JobOptions())

    assert limited(JobOptions(max_new_partitions=3)).max_new_partitions == 3
