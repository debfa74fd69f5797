"""Gates of several partitions, and what is committed while one is looked at."""

from __future__ import annotations

import time
from datetime import date, timedelta
from pathlib import Path

import pytest

from airflow_provider_merge.metadata.paimon.table import PaimonTable
from airflow_provider_merge.metadata.table_view import TableView
from airflow_provider_merge.triggers.gates import PartitionGate
from spark_jobs.contract.request import TableName
from tests.support.paimon_metadata import TableFiles


@pytest.fixture
def orders(tmp_path: Path) -> TableFiles:
    return TableFiles(tmp_path).create()


def view(orders: TableFiles) -> TableView:
    return TableView(PaimonTable(TableName("shop", orders.name), str(orders.folder)))


def test_the_snapshot_that_is_told_has_the_partition(orders: TableFiles) -> None:
    orders.add({"2026-01-30": 1})
    gate, during = PartitionGate(({"day": "2026-01-31"},)), view(orders)
    assert during.latest.snapshot_id == 1
    orders.add({"2026-01-31": 1})
    assert gate.observe(during).facts is None, "it came during the poll"
    assert gate.observe(view(orders)).facts["snapshot_id"] == 2


def test_each_of_several_has_its_rows(orders: TableFiles) -> None:
    orders.add({"2026-01-29": 9, "2026-01-30": 5, "2026-01-31": 2})
    wanted = ({"day": "2026-01-31"}, {"DAY": "2026-01-30"})
    facts = PartitionGate(wanted, min_rows=2).observe(view(orders)).facts
    assert [each["rows"] for each in facts["partitions"]] == [2, 5]
    observation = PartitionGate(wanted, min_rows=3).observe(view(orders))
    assert observation.facts is None
    assert "1 of 2 partitions meet the condition" in observation.seen
    assert "partition day=2026-01-31 has 2 rows, expected at least 3" in observation.seen


def test_the_rows_that_are_there_are_told_beside_those_that_are_wanted(orders: TableFiles) -> None:
    orders.add({"2026-01-31": 1200})
    days = [{"day": f"2026-01-{day}"} for day in range(20, 32)]
    one = PartitionGate((days[-1],), min_rows=5000).observe(view(orders)).seen
    assert one.startswith(
        "partition day=2026-01-31 has 1,200 rows, expected at least 5,000; newest"
    )
    all_of_them = PartitionGate(tuple(days), min_rows=5).observe(view(orders)).seen
    missing = "partition day=2026-01-20 does not exist, expected at least 5 rows"
    assert all_of_them.startswith(f"1 of 12 partitions meet the condition; {missing}; ")
    assert "; and 6 more; newest: snapshot 1" in all_of_them


def test_a_table_without_a_snapshot(orders: TableFiles) -> None:
    seen = PartitionGate(({"day": "2026-01-31"},)).observe(view(orders)).seen
    assert seen == "the table has no snapshot; partition day=2026-01-31 does not exist"


def test_a_year_among_ten_is_found_at_once(orders: TableFiles) -> None:
    """Each comparison in Python holds up the event loop of the triggerer."""
    days = [str(date(2016, 1, 1) + timedelta(days=index)) for index in range(3650)]
    orders.add(dict.fromkeys(days, 1))
    gate = PartitionGate(tuple({"day": each} for each in days[-365:]), changed_since_millis=1)
    started = time.process_time()
    assert len(gate.observe(view(orders)).facts["partitions"]) == 365
    assert time.process_time() - started < 3
