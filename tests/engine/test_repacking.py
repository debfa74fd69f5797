"""How many files an update leaves in a table with deletion vectors, on few and on many cores."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark import SparkContext

from spark_jobs.contract.result import Metrics
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.errors import DataError, ErrorCode
from tests.conformance.behaviour import Behaviour, insert, matched, not_matched, update
from tests.conformance.check import request_of
from tests.conformance.conftest import MakeTable
from tests.conformance.harness import Harness
from tests.conformance.tables import ORDERS

pytestmark = pytest.mark.slow

# One row of each file.
CHANGED = sorted({min(row["id"] for row in file) for file in ORDERS.files})


def statement(v: str = "concat('new ', s.id)") -> Behaviour:
    values = ", ".join(f"({id_})" for id_ in (*CHANGED, 9001, 9002))
    new = insert(id="s.id", v="'inserted'", req="'r'", p="'a'")
    return Behaviour("", f"VALUES {values} AS s(id)", (matched(update(v=v)), not_matched(new)))


def run(harness: Harness, behaviour: Behaviour) -> Metrics:
    request = request_of(behaviour, harness, rewrite_share=1.0)
    result = Job(request, harness.spark, harness.open()).run()
    assert result.error is None, result.error
    return result.metrics


def with_cores(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Spark tell ``count`` cores."""
    monkeypatch.setattr(SparkContext, "defaultParallelism", property(lambda _: count))


@pytest.mark.parametrize("cores", [2, 100])
@pytest.mark.parametrize("connector", ["append-dv", "bucketed-dv"])
def test_no_place_gets_more_than_two_files(
    connector: str, cores: int, make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_cores(cores, monkeypatch)
    harness = make_table(connector, ORDERS, partitioned=False)
    before = harness.state()

    metrics = run(harness, statement())

    after = harness.state()
    places = {Path(path).parent for path in after.files}
    added = after.files.keys() - before.files.keys()
    assert len(places) <= len(added) <= 2 * len(places)
    assert metrics.files_added == len(added)
    assert metrics.bytes_added == sum(after.files[path].size for path in added) + sum(
        size for path, size in after.indexes.items() if path not in before.indexes
    )
    assert (metrics.updated, metrics.inserted, metrics.deleted) == (len(CHANGED), 2, 0)
    assert after.on_disk == before.on_disk | added | after.indexes.keys(), "no other file is left"
    changed = {row["id"]: row for row in after.rows if row["id"] in CHANGED}
    old = {row["id"]: row for row in before.rows if row["id"] in CHANGED}
    assert changed == {i: {**row, "v": f"new {i}"} for i, row in old.items()}
    assert len(after.rows) == len(before.rows) + 2
    assert {r["id"] for r in after.rows if r["v"] == "inserted"} == {9001, 9002}


def test_a_repacking_that_fails_leaves_nothing(
    make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_cores(100, monkeypatch)
    harness = make_table("append-dv", ORDERS, partitioned=True)
    before = harness.state()

    def fail(*_: object) -> None:
        raise DataError(ErrorCode.VALUE_NOT_STORABLE, "no")

    connector = harness.open()
    monkeypatch.setattr(type(connector.writes), "discard", fail)
    request = request_of(statement(), harness, rewrite_share=1.0)
    result = Job(request, harness.spark, connector).run()

    assert result.error is not None
    assert result.error.code == ErrorCode.VALUE_NOT_STORABLE.name
    assert harness.state().on_disk == before.on_disk
