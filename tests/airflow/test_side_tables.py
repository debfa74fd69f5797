"""Tables for late rows and audits that do not fit are told before Spark starts, with a remedy."""

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
from spark_jobs.contract.side_outputs import AUDIT_COLUMNS
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


FITTING = {"at": "TIMESTAMP(6)", "cost": "DOUBLE"}


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (FITTING, ""),
        ({"COST": "DOUBLE", "at": "TIMESTAMP(3)", "more": "INT"}, ""),
        ({"at": "TIMESTAMP(6)"}, "shop.late has no column cost, which the source has"),
        (
            {**FITTING, "cost": "FLOAT"},
            "column cost of shop.late is FLOAT, and has to take every D",
        ),
        ({**FITTING, "at": "DATE"}, "column at of shop.late is DATE"),
        ({**FITTING, "cost": "DOUBLE NOT NULL"}, "column cost of shop.late is DOUBLE NOT NULL"),
    ],
)
def test_a_table_that_late_rows_do_not_fit(
    more: dict[str, Any], problem: str, hook: PaimonHook, warehouse: Path
) -> None:
    TableFiles(warehouse, "late", more_columns=more).create()
    named = to_named_sources({"feed": table_source("shop.changes")})
    check = MetadataCheck(hook, shares_files=True)
    if not problem:
        check.require_side_tables(GUARDS, named, "feed")
        return
    with pytest.raises(JobError, match=f"quarantine_table: {problem}") as raised:
        check.require_side_tables(GUARDS, named, "feed")
    assert "A table that fits: CREATE TABLE shop.late (`id` BIGINT, " in str(raised.value)


def test_columns_that_spark_may_lack_are_left_to_the_job(hook: PaimonHook, warehouse: Path) -> None:
    odd = {"a": "TIME(0)", "b": "TIMESTAMP(9)", "c": "VARIANT"}
    TableFiles(warehouse, "odd", more_columns=odd).create()
    TableFiles(warehouse, "late").create()
    named = to_named_sources({"feed": table_source("shop.odd")})
    MetadataCheck(hook, shares_files=True).require_side_tables(GUARDS, named, "feed")


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({}, ""),
        ({"operation": "STRING NOT NULL"}, ""),
        ({"clause": "BIGINT"}, "column clause of shop.audit is BIGINT, and has to be INT"),
        ({"row_key": "VARCHAR(9)"}, r"column row_key of shop.audit is VARCHAR\(9\), and has to be"),
        (
            {"clause": "INT NOT NULL"},
            "column clause of shop.audit is NOT NULL, and has to take NULL",
        ),
        ({"clause": None}, "shop.audit has no column clause"),
    ],
)
def test_a_table_that_audits_do_not_fit(
    changed: dict[str, str | None], problem: str, hook: PaimonHook, warehouse: Path
) -> None:
    columns = {name: kind for name, kind in {**AUDIT_COLUMNS, **changed}.items() if kind}
    TableFiles(warehouse, "audit", more_columns=columns).create()
    check = MetadataCheck(hook, shares_files=True)
    if not problem:
        check.require_side_tables(Guards(audit_table="shop.audit"))
        return
    with pytest.raises(JobError, match=f"audit_table: {problem}") as raised:
        check.require_side_tables(Guards(audit_table="shop.audit"))
    assert "An audit table is one of: CREATE TABLE shop.audit (`operation_id` " in str(raised.value)
