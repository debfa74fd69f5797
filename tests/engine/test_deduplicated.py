"""One row for each key: the last, as an oracle in Python has it; ties and NULLs are errors."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.contract.deduplication import DeduplicatedSource, Tie
from spark_jobs.contract.request import (
    FileSource,
    JobRequest,
    Source,
    SqlSource,
    TableSource,
)
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import DeleteSpec, MergeSpec
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.source.deduplicated import deduplicated
from spark_jobs.errors import JobError
from tests.conformance.behaviour import insert, matched, not_matched, update
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import ORDERS

pytestmark = pytest.mark.slow

# Columns: the case and the key, the order, and what else a row has.
Row = tuple[int, str, float, int, str | None]
_SCHEMA = "n INT, k STRING, at DOUBLE, seq INT, v STRING"
_CLAUSES = (matched(update(v="s.v")), not_matched(insert(id="s.id", v="s.v", req="'r'")))
_TIMES = (float("-inf"), -1.0, 0.0, 2.5, float("inf"), float("nan"))


def _cases(seed: int, count: int) -> list[Row]:
    """Many small sources in one, told apart by their number, with rows that occur twice."""
    chance = random.Random(seed)
    rows: list[Row] = []
    for number in range(count):
        for _ in range(chance.randint(1, 8)):
            value = chance.choice([None, "", "a", "b"])
            order = (chance.choice(_TIMES), chance.randint(0, 2))
            rows.append((number, chance.choice("xyz"), *order, value))
            rows += [rows[-1]] * chance.choice([0, 0, 0, 1, 2])
    chance.shuffle(rows)
    return rows


def _rank(value: Any) -> Any:
    """Spark's order: NULL first, then numbers, NaN above all."""
    if value is None:
        return (0, 0)
    return (2, 0) if value != value else (1, value)


def _last(rows: list[Row]) -> tuple[dict[Any, Row], set[Any]]:
    """The last row of each key, and the keys of which several different rows are the last."""
    kept: dict[Any, Row] = {}
    for row in rows:
        key = row[:2]
        if key not in kept or list(map(_rank, row[2:])) > list(map(_rank, kept[key][2:])):
            kept[key] = row
    tied = {
        row[:2]
        for row in rows
        if [*map(_rank, row[2:4])] == [*map(_rank, kept[row[:2]][2:4])]
        and row[4] != kept[row[:2]][4]
    }
    return kept, tied


def _kept(harness: Harness, rows: list[Row], tie: Tie) -> list[str]:
    harness.spark.createDataFrame(rows, _SCHEMA).createOrReplaceTempView("feed")
    source = DeduplicatedSource("s", "feed", ("K", "n"), ("at", "SEQ"), tie)
    frame = deduplicated(harness.spark, source)
    assert frame.columns == ["n", "k", "at", "seq", "v"]
    return sorted(str(tuple(row)) for row in frame.collect())


@pytest.fixture
def harness(make_table: Callable[..., Harness]) -> Harness:
    return make_table("append-cow", ORDERS, partitioned=False)


def test_the_last_row_is_that_of_the_oracle(harness: Harness) -> None:
    rows = _cases(7, 1_500)
    kept, tied = _last(rows)
    assert len(tied) > 100

    assert _kept(harness, rows, "any") == sorted(map(str, kept.values()))

    fine = [row for row in rows if row[:2] not in tied]
    without = [row for key, row in kept.items() if key not in tied]
    assert _kept(harness, fine, "fail") == sorted(map(str, without))

    one = sorted(tied)[0]
    with pytest.raises(Exception) as caught:  # noqa: PT011 - what a job makes of it, see below
        _kept(harness, [*fine, *(row for row in rows if row[:2] == one)], "fail")
    assert "SOURCE_KEY_NOT_UNIQUE" in str(caught.value)


def _merged(harness: Harness, *sources: Source, **more: Any) -> JobResult:
    statement = MergeSpec("s", "t.id = s.id", _CLAUSES, "t", "s")
    request = JobRequest("deduplicated", TARGET, harness.catalog, statement, sources, **more)
    return Job(request, harness.spark, harness.open()).run()


def _files(folder: Path) -> dict[str, Source]:
    """The same rows as sources of each kind: of the id 7, the second is the last."""
    rows = pa.table({"id": [7, 7, 900], "v": ["old", "new", "only"], "at": [1, 2, 1]})
    pq.write_table(rows, folder / "changes.parquet")
    text = "id,v,at\n7,old,1\n7,new,2\n900,only,1\n"
    (folder / "changes.csv").write_text(text)
    query = "SELECT * FROM VALUES (7, 'old', 1), (7, 'new', 2), (900, 'only', 1) AS x (id, v, at)"
    options, schema = {"header": "true"}, "id BIGINT, v STRING, at INT"
    return {
        "parquet": FileSource("all", str(folder / "changes.parquet"), "parquet"),
        "csv": FileSource("all", str(folder / "changes.csv"), "csv", options, schema),
        "sql": SqlSource("all", query),
    }


@pytest.mark.parametrize("kind", ["parquet", "csv", "sql"])
def test_a_merge_takes_any_source(harness: Harness, tmp_path: Path, kind: str) -> None:
    every = _files(tmp_path)[kind]
    last = DeduplicatedSource("s", "all", ("id",), ("at",))

    planned = _merged(harness, every, last, dry_run=True, plan_only=True)
    dry = _merged(harness, every, last, dry_run=True)
    result = _merged(harness, every, last, approved=dry.ticket)

    assert (planned.status, planned.metrics.source_rows) == ("planned", 2)
    assert result.error is None, result.error
    assert (dry.metrics.source_rows, result.metrics.source_rows) == (2, 2)
    values = {row["id"]: row["v"] for row in harness.read()}
    assert (values[900], values.get(7, "new")) == ("only", "new")


def test_an_approval_is_of_the_rows_below(harness: Harness, tmp_path: Path) -> None:
    every, last = _files(tmp_path)["parquet"], DeduplicatedSource("s", "all", ("id",), ("at",))
    dry = _merged(harness, every, last, dry_run=True)
    rows = pa.table({"id": [7, 7, 901], "v": ["old", "new", "only"], "at": [1, 2, 1]})
    pq.write_table(rows, tmp_path / "changes.parquet")

    stale = _merged(harness, every, last, approved=dry.ticket)
    other = _merged(
        harness, every, DeduplicatedSource("s", "all", ("id",), ("at",), "any"), approved=dry.ticket
    )

    for result in (stale, other):
        assert result.error is not None
        assert result.error.code == "APPROVAL_STALE"


@pytest.mark.parametrize(
    ("source", "code", "message"),
    [
        (
            DeduplicatedSource("s", "all", ("id",), ("same",)),
            "SOURCE_KEY_NOT_UNIQUE",
            'source s: different rows have the key {"id":7} and equal values of same',
        ),
        (DeduplicatedSource("s", "all", ("id",)), "SOURCE_KEY_NOT_UNIQUE", '{"id":7}'),
        (
            DeduplicatedSource("s", "all", ("nothing",), ("at",)),
            "NOT_NULL_VIOLATION",
            "source s: nothing of the key is NULL in a row",
        ),
        (
            DeduplicatedSource("s", "all", ("id",), ("nothing",)),
            "NOT_NULL_VIOLATION",
            "source s: nothing of the order is NULL in a row",
        ),
        (
            DeduplicatedSource("s", "all", ("nope",)),
            "COLUMN_NOT_FOUND",
            "source s: by: nope is not a column of it",
        ),
        (DeduplicatedSource("s", "all", ("m",)), "TYPE_MISMATCH", "by: m is of the type map"),
    ],
    ids=["tie", "no order", "null key", "null order", "no column", "no order of values"],
)
def test_what_cannot_be_decided_is_named(
    harness: Harness, source: DeduplicatedSource, code: str, message: str
) -> None:
    before = harness.state()
    query = (
        "SELECT *, 1 AS same, map('a', id) AS m, nullif(at, 2) AS nothing FROM VALUES "
        "(7, 'old', 1), (7, 'new', 2), (900, 'only', 1) AS x (id, v, at)"
    )
    try:
        result = _merged(harness, SqlSource("all", query), source)
        found = result.error and (result.error.code, result.error.message)
    except JobError as error:
        found = (error.code.name, str(error))

    assert found is not None
    assert found[0] == code
    assert message in found[1]
    after = harness.state()
    assert (after.rows, after.files, after.on_disk) == (before.rows, before.files, before.on_disk)


def test_a_table_and_subqueries_take_it(harness: Harness) -> None:
    rows = len(harness.read())
    every = TableSource("all", TARGET)
    last = DeduplicatedSource("s", "all", ("id",), (), "any")
    ids = {row["id"] for row in harness.read() if row["id"] is not None}
    known = SqlSource("known", "SELECT * FROM all WHERE id IS NOT NULL")
    source = DeduplicatedSource("s", "known", last.by, last.order_by, last.tie)
    statement = DeleteSpec("t", "t.id IN (SELECT id FROM s)")
    request = JobRequest("gone", TARGET, harness.catalog, statement, (every, known, source))

    result = Job(request, harness.spark, harness.open()).run()

    assert result.error is None, result.error
    assert result.metrics.source_rows == len(ids)
    assert len(harness.read()) == rows - result.metrics.deleted
