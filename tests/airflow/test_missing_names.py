"""A name of a statement that is not there: the error says what is."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_merge.checks.requests import MetadataCheck
from airflow_provider_merge.hooks.paimon import PaimonHook
from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.errors import ErrorCode, JobError
from tests.support.paimon_metadata import TableFiles


@pytest.fixture
def hook(warehouse: Path) -> PaimonHook:
    for table in ("orders", "changes"):
        TableFiles(warehouse, table, more_columns={"region": "STRING"}).create()
    return PaimonHook("paimon_default")


def refusal(hook: PaimonHook, sql: str) -> JobError:
    parsed = parse_statement(sql)
    with pytest.raises(JobError) as raised:
        MetadataCheck(hook, shares_files=True).require_valid(
            parsed.target, parsed.statement, parsed.sources
        )
    return raised.value


@pytest.mark.parametrize(
    ("table", "remedy"),
    [
        ("shop.order", "Did you mean shop.orders? {} Tables of shop: shop.changes, shop.orders."),
        ("shop.zzz", "{} Tables of shop: shop.changes, shop.orders."),
        ("shp.orders", "Did you mean shop.orders? {} Databases that have tables: shop."),
        ("zzz.qqq", "{} Databases that have tables: shop."),
    ],
)
def test_a_table(hook: PaimonHook, table: str, remedy: str) -> None:
    error = refusal(hook, f"DELETE FROM {table}")
    assert error.code is ErrorCode.TABLE_NOT_FOUND
    usual = "Correct the table's name, or the warehouse of the catalog connection."
    assert error.remedy == remedy.format(usual)


def test_many_tables_are_not_all_shown(hook: PaimonHook, warehouse: Path) -> None:
    for number in range(30):
        TableFiles(warehouse, f"daily_{number:02}").create()
    remedy = refusal(hook, "DELETE FROM shop.nothing").remedy
    assert "shop.daily_17, shop.daily_18, ..." in remedy


def test_a_text_without_quotes(hook: PaimonHook) -> None:
    text = "MERGE INTO shop.orders t USING shop.changes s ON t.id = s.id WHEN MATCHED THEN UPDATE"
    error = refusal(hook, f"{text} SET region = north")
    assert error.code is ErrorCode.COLUMN_NOT_FOUND
    assert error.problem == "north is not a column of shop.orders or shop.changes"
    assert error.remedy == (
        "A text needs quotes of its own: \"'north'\". Columns of shop.orders: id, day, region. "
        "Columns of shop.changes: id, day, region."
    )
