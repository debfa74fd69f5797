"""Ids of snapshots are text wherever a browser reads them: it would round those of 19 digits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pydantic
import pytest

from airflow_provider_merge.ui import answers
from tests.airflow.tables_ui_client import Caller
from tests.support.iceberg_tables import IcebergTable

OLD_AT_ONCE: dict[str, Any] = {"history.expire.max-snapshot-age-ms": "1"}

_EXACT = 2**53 - 1
_MODELS = [
    each
    for each in vars(answers).values()
    if isinstance(each, type) and issubclass(each, pydantic.BaseModel)
]
_IDS = ("snapshot_id", "base_snapshot_id", "first_retained")


@pytest.fixture
def table(iceberg_catalog: Any) -> IcebergTable:
    table = IcebergTable.create(iceberg_catalog, **OLD_AT_ONCE)
    for rows in (1, 2, 3):
        while table.append(20_484, "x", rows=rows) <= _EXACT:
            pass  # one in a thousand
    head = table.head
    table.table.manage_snapshots().create_tag(head, "t").create_branch(head, "b").commit()
    return table


def numbers(told: Any) -> Iterator[int | float]:
    """All numbers in a JSON document."""
    if isinstance(told, dict | list):
        for each in told.values() if isinstance(told, dict) else told:
            yield from numbers(each)
    elif isinstance(told, int | float) and not isinstance(told, bool):
        yield told


def test_no_field_for_an_id_is_a_number() -> None:
    fields = [
        (model.__name__, name, field.annotation)
        for model in _MODELS
        for name, field in model.model_fields.items()
        if name in _IDS
    ]

    assert len(fields) > 6
    assert {kind for *_, kind in fields} <= {str, str | None}


def test_no_answer_about_a_table_has_a_number_that_browsers_round(
    table: IcebergTable, users: dict[str, Caller]
) -> None:
    admin, head = users["ADMIN"], str(table.head)
    asked: dict[str, dict[str, Any]] = {
        path.removeprefix("/v1/"): {}
        for path in (getattr(each, "path", "") for each in admin.app.routes)
        if path.startswith("/v1/") and "{" not in path
    }
    first = admin.told("snapshots", connection="iceberg_default")["snapshots"][-1]["snapshot_id"]
    for name in ("compare", "sample"):
        asked[name] = {"before": first, "after": head}
    asked["operation"] = {"operation_id": "op-1"}
    del asked["openapi.json"], asked["sample"], asked["preview"]

    for path, query in asked.items():
        status, told = admin.get(path, connection="iceberg_default", **query)
        assert status == 200, (path, told)
        assert all(abs(each) <= _EXACT for each in numbers(told)), path

    assert int(head) > _EXACT
    assert admin.told("table", connection="iceberg_default")["latest"]["snapshot_id"] == head
    page = admin.told("snapshots", connection="iceberg_default", limit=1)
    assert isinstance(page["next"], str)
