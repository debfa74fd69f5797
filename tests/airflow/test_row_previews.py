"""The rows that a dry run has kept: asked for by its operator, shown to who may see rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

from airflow_provider_merge.hooks.catalog import catalog_hook
from airflow_provider_merge.operators._shared.results import xcom_value
from airflow_provider_merge.operators.delete_from import DeleteFromOperator
from airflow_provider_merge.operators.drop_partitions import DropPartitionsOperator
from spark_jobs.contract.operation_files import preview_path
from spark_jobs.contract.progress_note import catalog_mark
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.row_preview import PreviewedRow, RowPreview
from spark_jobs.errors import JobError
from tests.airflow.tables_ui_client import Caller
from tests.support.hostile_texts import hostile_texts

ID = "0c1d"
ROWS = (
    PreviewedRow("update", 1, ("1", "Oslo"), ("1", None), (1,)),
    PreviewedRow("delete", 2, ("2", "Bern"), None),
    PreviewedRow("insert", 3, None, ("3", "Rome")),
)


@pytest.fixture
def admin(users: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Caller:
    monkeypatch.setenv("AIRFLOW__MERGE__UI_SAMPLES", "paimon_default")
    return users["ADMIN"]


def kept(warehouse: Path, **changes: Any) -> None:
    """Leave rows, as the job of a dry run does."""
    mark = catalog_mark(catalog_hook("paimon_default").catalog_spec())
    found = RowPreview(ID, "shop.orders", mark, ("id", "city"), ("tags",), ROWS)
    path = warehouse / preview_path(ID)
    path.parent.mkdir(exist_ok=True)
    path.write_text(replace(found, **changes).to_json())


def test_old_beside_new(warehouse: Path, admin: Caller) -> None:
    kept(warehouse)
    told = admin.told("preview", operation_id=ID)
    assert (told["columns"], told["left_out"]) == (["id", "city"], ["tags"])
    assert told["rows"] == [
        {
            "operation": "update",
            "clause": 1,
            "old": ["1", "Oslo"],
            "new": ["1", None],
            "differs": [1],
        },
        {"operation": "delete", "clause": 2, "old": ["2", "Bern"], "new": None, "differs": []},
        {"operation": "insert", "clause": 3, "old": None, "new": ["3", "Rome"], "differs": []},
    ]


def test_hostile_values_stay_what_they_are(warehouse: Path, admin: Caller) -> None:
    texts = tuple(hostile_texts(50))
    kept(warehouse, rows=tuple(PreviewedRow("insert", None, None, ("1", each)) for each in texts))
    told = admin.told("preview", operation_id=ID)
    assert [row["new"][1] for row in told["rows"]] == list(texts)


def test_rows_that_are_gone_or_of_another_table_or_catalog_are_none(
    warehouse: Path, admin: Caller
) -> None:
    assert admin.told("preview", operation_id=ID) is None
    for other in ({"table": "shop.others"}, {"catalog": "0" * 64}):
        kept(warehouse, **other)
        assert admin.told("preview", operation_id=ID) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 2}', "[" * 100_000])
def test_what_is_no_preview_is_an_error(text: str, warehouse: Path, admin: Caller) -> None:
    kept(warehouse)
    (warehouse / preview_path(ID)).write_text(text)
    status, told = admin.get("preview", operation_id=ID)
    assert (status >= 400, set(told)) == (True, {"code", "message", "remedy"})


def test_rows_are_for_those_who_may_change_the_connection(
    warehouse: Path, users: dict[str, Any], admin: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(warehouse)
    monkeypatch.setenv("AIRFLOW__MERGE__UI_CONNECTIONS", "paimon_default")
    assert users["VIEWER"].get("preview", operation_id=ID)[0] == 403
    assert users[""].get("preview", operation_id=ID)[0] == 401
    monkeypatch.setattr(
        SimpleAuthManager, "is_authorized_connection", lambda _, method, **__: method == "GET"
    )
    assert admin.get("preview", operation_id=ID)[0] == 403


def test_without_the_setting_nobody_sees_rows(warehouse: Path, users: dict[str, Any]) -> None:
    kept(warehouse)
    assert users["ADMIN"].get("preview", operation_id=ID)[0] == 403


def test_only_a_dry_run_keeps_rows() -> None:
    parameters: dict[str, Any] = {"task_id": "t", "target": "shop.orders", "where": "id = 1"}
    dry = DeleteFromOperator(**parameters, dry_run=True, preview_rows="5")
    real = DeleteFromOperator(**parameters, preview_rows=5)
    assert (dry.job_options().preview_rows, real.job_options().preview_rows) == (5, None)
    with pytest.raises(JobError, match=r"preview_rows.*plan"):
        DeleteFromOperator(**parameters, dry_run="plan", preview_rows=5)
    for wrong in (0, -1, 101, 2.5, "many", True):
        with pytest.raises(JobError, match="preview_rows"):
            DeleteFromOperator(**parameters, dry_run=True, preview_rows=wrong)


def test_rows_of_dropped_partitions_are_read_by_spark() -> None:
    parameters: dict[str, Any] = {"task_id": "t", "target": "a.b", "partitions": [{"day": "1"}]}
    assert DropPartitionsOperator(**parameters, dry_run=True, preview_rows=5).needs_session()


def test_no_xcom_has_rows() -> None:
    result = JobResult("op", "dry_run", "shop.orders", "digest", row_preview=True)
    assert xcom_value(result)["row_preview"] is True
    assert "row_preview" not in xcom_value(replace(result, status="committed"))
