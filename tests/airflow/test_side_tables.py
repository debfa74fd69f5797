"""A missing table for late rows is told before Spark starts, with the statement that makes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_provider_merge.checks.requests import MetadataCheck
from airflow_provider_merge.hooks.paimon import PaimonHook
from airflow_provider_merge.operators._shared.source_parameters import to_named_sources
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import (
    changes_source,
    deduplicate,
    file_source,
    table_source,
)
from spark_jobs.contract.guards import Guards
from spark_jobs.errors import JobError
from tests.support.paimon_metadata import TableFiles

CHANGES = changes_source("shop.changes", start="all")
TOLD = ", `_change_type` STRING, `_snapshot_id` BIGINT)"
GUARDS = Guards(
    expected_partitions=({"day": "'2026-01-31'"},),
    outside_partitions="quarantine",
    quarantine_table="shop.late",
)


@pytest.fixture
def hook(warehouse: Path) -> PaimonHook:
    TableFiles(warehouse, "changes", more_columns={"at": "TIMESTAMP(6)", "cost": "DOUBLE"}).create()
    return PaimonHook("paimon_default")


@pytest.mark.parametrize(
    ("source", "more"),
    [
        (table_source("shop.changes"), ")"),
        (CHANGES, TOLD),
        (deduplicate(CHANGES, by=["id"]), TOLD),
    ],
    ids=["table", "changes", "deduplicated"],
)
def test_the_statement_has_the_columns_of_the_source(
    hook: PaimonHook, source: dict[str, Any], more: str
) -> None:
    named = to_named_sources({"feed": source})
    with pytest.raises(JobError) as raised:
        MetadataCheck(hook, shares_files=True).require_side_tables(GUARDS, named, "feed")
    text = str(raised.value)
    assert "quarantine_table: there is no table shop.late at " in text
    assert "Make it: CREATE TABLE shop.late (`id` " in text
    assert text.endswith(f"`cost` DOUBLE{more}")


def test_columns_that_are_not_known_are_not_made_up(hook: PaimonHook, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").touch()
    named = to_named_sources({"feed": file_source(str(tmp_path), "parquet")})
    with pytest.raises(JobError, match="Make it, with the columns of the source"):
        MetadataCheck(hook, shares_files=True).require_side_tables(GUARDS, named, "feed")


def test_the_remedy_for_changes_on_a_branch_is_a_table() -> None:
    with pytest.raises(JobError, match="read all of the source: table_source"):
        MergeIntoOperator(
            task_id="t",
            target="shop.orders$branch_audit",
            source=CHANGES,
            on="t.id = s.id",
            when=[{"when": "matched", "action": "delete"}],
        )
