"""Airflow's side counts runs, levels and marked rows of tables that Java writes and compacts."""

from __future__ import annotations

import pytest

from airflow_provider_merge.metadata.paimon.table import PaimonTable
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.request import TableName
from tests.judge.keyed_tables import entries_of
from tests.judge.writer import JavaTable

KINDS = {"id": "INT NOT NULL", "v": "STRING", "p": "STRING NOT NULL"}
WRITE_ONLY = {"write-only": "true"}


def table(warehouse, **options):
    options = {name.replace("_", "-"): value for name, value in options.items()}
    return JavaTable.of_types(
        warehouse.path, "d.t", KINDS, ["p"], {"bucket": "1", **WRITE_ONLY, **options}, ["p", "id"]
    )


def rows(numbers, p="a"):
    return [("+I", {"id": n, "v": "x", "p": p}) for n in numbers]


def facts(warehouse, *, include_pending=False):
    found = PaimonTable.find(str(warehouse.path), TableName("d", "t"), {})
    spec = CompactSpec(include_pending=include_pending)
    return {each.values["p"]: each for each in found.compaction_facts(spec)}


def levels(warehouse):
    return sorted(entry.file.level for entry in entries_of(warehouse.table("d.t")))


def test_levels_above_0_are_a_run_each(warehouse):
    java = table(warehouse, target_file_size="1 b")
    for start in (0, 10, 20):
        java.append_records(rows(range(start, start + 10)))
    assert facts(warehouse)["a"].sorted_runs == {0: 3}
    java.compact()
    java.append_records(rows([100]))
    java.append_records(rows([5], "b"))

    found = facts(warehouse)

    assert levels(warehouse)[:2] == [0, 0]
    assert levels(warehouse)[2] > 0
    assert found["a"].sorted_runs == {0: 2}
    assert (found["a"].level_0_files, found["b"].sorted_runs) == (1, {0: 1})
    java.compact()
    assert facts(warehouse)["a"].sorted_runs == {0: 1}
    assert facts(warehouse)["a"].level_0_files == 0


@pytest.mark.parametrize("bucket", ["1", "-1"])
def test_rows_that_compactions_marked(warehouse, bucket):
    options = {"deletion-vectors.enabled": "true", "write-only": "false", "bucket": bucket}
    java = table(warehouse, **options)
    java.append_records(rows(range(50)))
    java.compact()
    java.append_records(rows(range(10)))
    java.compact(full=False)

    one = facts(warehouse)["a"]

    assert (one.rows, one.marked_rows, one.level_0_files) == (60, 10, 0)
    assert one.marked_share == pytest.approx(1 / 6)
    assert (one.most_sorted_runs, one.pending_files) == (2, 0)


def test_what_waits_for_a_compaction(warehouse):
    java = table(warehouse, **{"deletion-vectors.enabled": "true"})
    for _ in range(2):
        java.append_records(rows(range(5)))
    assert (facts(warehouse)["a"].pending_files, facts(warehouse)["a"].sorted_runs) == (2, {})
    assert facts(warehouse, include_pending=True)["a"].sorted_runs == {0: 2}
    java.compact()
    assert facts(warehouse)["a"].pending_files == 0
    assert facts(warehouse)["a"].sorted_runs == {0: 1}
