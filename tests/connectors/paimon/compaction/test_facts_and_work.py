"""What Airflow's side says is worth compacting is work, and a compaction leaves none of it."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from airflow_provider_merge.metadata.paimon.table import PaimonTable
from airflow_provider_merge.metadata.table_view import TableView
from airflow_provider_merge.triggers.compaction_gate import CompactionGate
from spark_jobs.connectors.paimon.table.table_handle import pinned_table
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from tests.support import compaction_runs
from tests.support.paimon_tables import (
    NAME,
    append,
    append_with_pypaimon,
    change_rows,
    create,
    merge,
    snapshot_ids,
)

COLUMNS = {"id": "BIGINT", "name": "STRING", "p": "INT"}
MARKS = {"deletion-vectors.enabled": "true"}
APPEND_TABLES = {
    "without buckets": {},
    "fixed buckets": {"bucket": "2", "bucket-key": "id"},
    "deletion vectors": MARKS,
    "fixed buckets with deletion vectors": {"bucket": "2", "bucket-key": "id", **MARKS},
}
# All small files of a bucket fit into one. Where that needs several, sensors estimate: how a
# compaction distributes files depends on their ages.
TARGET = "16 kb"
SMALL, LARGE = 10, 500
_MANY = 400
SPEC = CompactSpec(target_file_size=TARGET, min_files=3, sorted_runs=3, deleted_share=0.3)
GATE = CompactionGate(
    min_small_files=3, min_sorted_runs=3, min_deleted_share=0.3, target_file_size=TARGET
)


def new_rows(random: Random, count: int) -> list[dict[str, Any]]:
    p = random.choice((0, None))
    return [
        {"id": random.randrange(10**6), "name": random.randbytes(40).hex(), "p": p}
        for _ in range(count)
    ]


def mark(random: Random, connector: Connector, number: int) -> None:
    """Delete some rows of a file."""
    table = connector.metadata.load_table(NAME)
    entries = pinned_table(table).files.located_entries
    file = random.randrange(len(entries))
    count = int(entries[file][1].file.row_count)
    marked = pinned_table(table).files.vectors.get(entries[file][1].file.file_name)
    if marked is None:
        # What is left of a file is small, or far from it: so the small ones still fit into one.
        gone = random.choice((1, count * 2 // 5 if count > _MANY else count, count))
        positions = random.sample(range(count), gone)
        rows_gone = [{"file": file, "position": position} for position in sorted(positions)]
        changes = change_rows(table, rows.DELETE, rows_gone)
        merge(connector, table, changes, operation_id=f"d-{number}")


def is_open(warehouse: Path) -> bool:
    view = TableView(PaimonTable.find(str(warehouse), NAME, {}))
    return GATE.observe(view).facts is not None


def due_files(warehouse: Path) -> int:
    """How many files a compaction would rewrite, as plans for many tables count them."""
    facts = PaimonTable.find(str(warehouse), NAME, {}).compaction_facts(SPEC)
    return sum(each.due.files for each in facts)


def compact(connector: Connector, warehouse: Path) -> bool:
    """Whether a compaction made a snapshot."""
    before = snapshot_ids(connector)
    result = compaction_runs.compact(connector, CatalogSpec("paimon", str(warehouse)), SPEC)
    assert result.error is None, result.error
    return snapshot_ids(connector) != before


def check(connector: Connector, warehouse: Path) -> None:
    was_open, due = is_open(warehouse), due_files(warehouse)
    made = compact(connector, warehouse)
    assert made or not was_open
    assert made == bool(due)
    assert not is_open(warehouse)
    assert not due_files(warehouse)


@pytest.mark.slow
@pytest.mark.parametrize("kind", APPEND_TABLES)
@pytest.mark.parametrize("seed", range(3))
def test_append_tables(connector: Connector, warehouse: Path, kind: str, seed: int) -> None:
    random = Random(f"{kind} {seed}")
    create(connector, COLUMNS, ["p"], APPEND_TABLES[kind])
    for number in range(9):
        append(connector, new_rows(random, random.choice((SMALL, SMALL, LARGE))), f"a-{number}")
        if random.random() < 0.4:
            mark(random, connector, number)
        if number % 3 == 2:
            check(connector, warehouse)
    for number in range(3):
        append(connector, [{**row, "p": 0} for row in new_rows(random, SMALL)], f"b-{number}")
    assert is_open(warehouse)
    check(connector, warehouse)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_tables_with_a_primary_key(connector: Connector, warehouse: Path, seed: int) -> None:
    random = Random(seed)
    create(connector, COLUMNS, ["p"], {"bucket": "2"}, primary_key=["p", "id"])
    for number in range(9):
        values = [{**row, "p": 0, "id": row["id"] % 200} for row in new_rows(random, 20)]
        append_with_pypaimon(connector.metadata.load_table(NAME), values)
        if number % 3 == 2:
            assert is_open(warehouse)
            check(connector, warehouse)
