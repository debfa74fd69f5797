"""INSERTs whose tasks store what they compute: files, counts, and what an error leaves."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from spark_jobs.contract.inserts import InsertIntoSpec, InsertOverwriteSpec, InsertStatement
from spark_jobs.contract.request import JobRequest, SqlSource
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.job.statement_job import Job
from tests.conformance.conftest import MakeTable
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import EMPTY
from tests.support.insert_paths import InsertPath, forced_insert_path

pytestmark = pytest.mark.slow

_ROWS = (
    "SELECT id, CAST(id % 1000 AS INT) AS k, concat('v', id) AS v, 1 AS n, 'r' AS req, {p} AS p "
    "FROM range(0, {n}, 1, {tasks})"
)
_KINDS = ("append-cow", "iceberg-cow")


def insert(harness: Harness, rows: str, statement: InsertStatement | None = None) -> JobResult:
    spec = statement or InsertIntoSpec("s")
    request = JobRequest("one", TARGET, harness.catalog, spec, (SqlSource("s", rows),))
    return Job(request, harness.spark, harness.open()).run()


def names(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted((row["id"], row["k"], row["v"], row["p"]) for row in rows)


def test_small_files_of_many_tasks_are_joined(make_table: MakeTable) -> None:
    for kind in _KINDS:
        harness = make_table(kind, EMPTY, partitioned=True)

        with forced_insert_path("streamed") as tally:
            result = insert(harness, _ROWS.format(p="'a'", n=5_000, tasks=12))

        assert result.error is None, result.error
        assert tally == Counter(streamed=1)
        after = harness.state()
        assert len(after.files) == result.metrics.files_added == 1
        assert after.on_disk == after.files.keys(), "the files that were joined are removed"
        assert result.metrics.inserted == result.metrics.source_rows == 5_000
        assert {row["id"] for row in after.rows} == set(range(5_000))


@pytest.mark.parametrize("path", ["streamed", "spilled", "materialised"])
def test_rows_of_many_partitions_in_each_task(path: InsertPath, make_table: MakeTable) -> None:
    for kind in _KINDS:
        harness = make_table(kind, EMPTY, partitioned=True)
        rows = _ROWS.format(p="concat('p', id % 9)", n=9_000, tasks=4)

        with forced_insert_path(path) as tally:
            result = insert(harness, rows)

        assert result.error is None, result.error
        assert tally == Counter({path: 1})
        after = harness.state()
        expected = [(n, n % 1000, f"v{n}", f"p{n % 9}") for n in range(9_000)]
        assert names(list(after.rows)) == expected
        by_partition = Counter(file.rows[0]["p"] for file in after.files.values())
        assert len(by_partition) == 9
        assert max(by_partition.values()) <= 2
        assert after.on_disk == after.files.keys()


@pytest.mark.parametrize(
    ("p", "statement", "code"),
    [
        ("'a'", InsertOverwriteSpec("s", "static", {"p": "'b'"}), "ROW_OUTSIDE_PARTITION"),
        ("CAST(1 / (id - 900) AS STRING)", InsertIntoSpec("s"), "EXPRESSION_FAILED"),
        ("CAST(x'ff' AS STRING)", InsertIntoSpec("s"), "VALUE_NOT_STORABLE"),
    ],
)
def test_an_error_leaves_no_file(
    p: str, statement: InsertStatement, code: str, make_table: MakeTable
) -> None:
    for kind in _KINDS:
        harness = make_table(kind, EMPTY, partitioned=True)
        before = harness.state()

        found = []
        for path in ("streamed", "materialised"):
            with forced_insert_path(path):
                result = insert(harness, _ROWS.format(p=p, n=1_000, tasks=2), statement)
            assert result.error is not None
            found.append((result.error.code, result.error.message))
            assert harness.state().on_disk == before.on_disk
            assert harness.latest_snapshot() == before.snapshot_id

        assert found[0] == found[1]
        assert found[0][0] == code


def test_random_values_are_stored_once(make_table: MakeTable) -> None:
    harness = make_table("iceberg-cow", EMPTY, partitioned=True)
    rows = _ROWS.format(p="IF(rand() < 0.5, 'heads', 'tails')", n=4_000, tasks=6)

    result = insert(harness, rows)

    assert result.error is None, result.error
    stored = harness.state().rows
    assert sorted(row["id"] for row in stored) == list(range(4_000))
    assert {row["p"] for row in stored} == {"heads", "tails"}
