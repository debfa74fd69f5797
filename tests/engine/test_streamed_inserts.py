"""INSERTs whose tasks store what they compute: files, counts, and what an error leaves."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any
from unittest import mock

import pytest

from spark_jobs.contract.inserts import InsertIntoSpec, InsertOverwriteSpec, InsertStatement
from spark_jobs.contract.request import JobRequest, SqlSource, TableSource
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.insert import overwrite_run
from spark_jobs.engine.insert.streaming import streamed
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.spi.tables import ColumnRange
from tests.conformance.check import readable
from tests.conformance.conftest import MakeTable
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import DEEP, EMPTY, EVENTS, NAMES, NESTED, VALUES
from tests.support.insert_paths import INSERT_PATHS, InsertPath, forced_insert_path

pytestmark = pytest.mark.slow

_ROWS = (
    "SELECT id, CAST(id % 1000 AS INT) AS k, concat('v', id) AS v, 1 AS n, 'r' AS req, {p} AS p "
    "FROM range(0, {n}, 1, {tasks})"
)
_KINDS = ("append-cow", "iceberg-cow")
_SEEDS = {seed.name: seed for seed in (NAMES, NESTED, DEEP, VALUES, EVENTS)}


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


@pytest.mark.parametrize("path", ["streamed", "materialised"])
def test_long_texts_are_stored_in_measured_batches(path: InsertPath, make_table: MakeTable) -> None:
    """The first of them ends the attempt that streams, whose files are removed."""
    text = "IF(id % 1000 = 0, repeat(concat('v', id), 40000), concat('v', id))"
    rows = _ROWS.format(p="IF(id < 900, 'a', 'b')", n=3_000, tasks=3)
    for kind in _KINDS:
        harness = make_table(kind, EMPTY, partitioned=True)

        with forced_insert_path(path) as tally:
            result = insert(harness, rows.replace("concat('v', id) AS v", f"{text} AS v"))

        assert result.error is None, result.error
        # Rows that are known before may go to tasks without Spark, in one attempt.
        assert tally[path] == 2 or path == "materialised"
        after = harness.state()
        assert after.on_disk == after.files.keys()
        lengths = {row["id"]: len(row["v"]) for row in after.rows}
        assert lengths.keys() == set(range(3_000))
        assert {id_ for id_, length in lengths.items() if length > 100} == {0, 1000, 2000}


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


_SORTED = "concat('p', lpad(CAST(id DIV 100000 AS STRING), 2, '0'))"


@pytest.mark.by_turns(3)
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("kind", _KINDS)
def test_partitions_that_come_one_after_another(
    kind: str, fails: bool, make_table: MakeTable
) -> None:
    """A task ends the files of those that are behind it: it keeps no rows for later."""
    harness = make_table(kind, EMPTY, partitioned=True)
    p = f"IF(id = 899000 AND 1 / (id - 899000) > 0, 'x', {_SORTED})" if fails else _SORTED
    spilled: list[int] = []

    def noted(*arguments: Any) -> Any:
        found = streamed(*arguments)
        spilled.append(found.spilled_bytes)
        return found

    with mock.patch.object(overwrite_run, "streamed", noted):
        result = insert(harness, _ROWS.format(p=p, n=900_000, tasks=1))

    after = harness.state()
    if fails:
        assert result.error is not None
        assert not after.on_disk, "files that were ended early are removed, too"
        return
    assert result.error is None, result.error
    assert spilled == [0]
    assert result.metrics.inserted == 900_000
    assert after.on_disk == after.files.keys()
    by_partition = Counter(file.rows[0]["p"] for file in after.files.values())
    assert by_partition == Counter({f"p{n:02}": 1 for n in range(9)})
    assert sorted(row["id"] for row in after.rows) == list(range(900_000))


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


@pytest.mark.by_turns(5)
@pytest.mark.parametrize("kind", ["append-cow", "append-dv", "iceberg-cow", "iceberg-v3-mor"])
@pytest.mark.parametrize("seed", _SEEDS)
def test_values_of_every_type(seed: str, kind: str, make_table: MakeTable) -> None:
    """What is stored, and what statistics say of it, does not depend on the path."""
    table, found = _SEEDS[seed], {}
    for path in INSERT_PATHS:
        harness = make_table(kind, table, partitioned=True)
        request = JobRequest(
            "one",
            TARGET,
            harness.catalog,
            InsertIntoSpec("s", by_name=True),
            (TableSource("t", TARGET), SqlSource("s", "SELECT * FROM t")),
        )

        with forced_insert_path(path) as tally:
            result = Job(request, harness.spark, harness.open()).run()

        assert result.error is None, result.error
        assert tally == Counter({path: 1})
        rows = readable(harness.state().rows)
        assert rows == readable([row for row in table.rows for _ in range(2)])
        found[path] = _bounds(harness)
    assert found["streamed"] == found["spilled"] == found["materialised"]


def _bounds(harness: Harness) -> dict[tuple[str, str], tuple[Any, ...]]:
    """The bounds and the number of NULLs that files tell, by partition and column."""
    connector = harness.open()
    files = connector.metadata.plan_files(connector.metadata.load_table(TARGET))
    told: dict[tuple[str, str], list[ColumnRange]] = defaultdict(list)
    for file in files:
        for name in file.ranges:
            told[repr(file.partition), name].append(file.known(name))
    return {place: _merged(ranges) for place, ranges in told.items()}


def _merged(ranges: list[ColumnRange]) -> tuple[Any, ...]:
    lows = [each.minimum for each in ranges if each.minimum is not None]
    highs = [each.maximum for each in ranges if each.maximum is not None]
    nulls = [each.null_count for each in ranges]
    count = None if None in nulls else sum(nulls)
    return min(lows, default=None), max(highs, default=None), count
