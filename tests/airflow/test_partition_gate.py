"""Gates of several partitions, and what is committed while one is looked at."""

from __future__ import annotations

import time
from datetime import date, timedelta

import pytest

from airflow_provider_merge.gates import PartitionGate
from airflow_provider_merge.metadata.paimon.table import PaimonTable
from airflow_provider_merge.metadata.table_view import TableView
from spark_jobs.contract.request import TableName
from tests.support.paimon_metadata import TableFiles


@pytest.fixture
def orders(tmp_path):
    return TableFiles(tmp_path).create()


def view(orders):
    return TableView(PaimonTable(TableName("shop", orders.name), str(orders.folder)))


def test_the_snapshot_that_is_told_has_the_partition(orders):
    orders.add({"2026-01-30": 1})
    gate, during = PartitionGate(({"day": "2026-01-31"},)), view(orders)
    assert during.latest.snapshot_id == 1
    orders.add({"2026-01-31": 1})
    assert gate.observe(during).facts is None, "it came during the poll"
    assert gate.observe(view(orders)).facts["snapshot_id"] == 2


def test_each_of_several_has_its_rows(orders):
    orders.add({"2026-01-29": 9, "2026-01-30": 5, "2026-01-31": 2})
    wanted = ({"day": "2026-01-31"}, {"DAY": "2026-01-30"})
    facts = PartitionGate(wanted, min_rows=2).observe(view(orders)).facts
    assert [each["rows"] for each in facts["partitions"]] == [2, 5]
    observation = PartitionGate(wanted, min_rows=3).observe(view(orders))
    assert observation.facts is None
    assert "1 of 2 partitions meet the condition" in observation.seen
    assert "fewer than 3 rows: day=2026-01-31" in observation.seen


def test_a_year_among_ten_is_found_at_once(orders):
    """Each comparison in Python holds up the event loop of the triggerer."""
    days = [str(date(2016, 1, 1) + timedelta(days=index)) for index in range(3650)]
    orders.add(dict.fromkeys(days, 1))
    gate = PartitionGate(tuple({"day": each} for each in days[-365:]), changed_since_millis=1)
    started = time.process_time()
    assert len(gate.observe(view(orders)).facts["partitions"]) == 365
    assert time.process_time() - started < 3
