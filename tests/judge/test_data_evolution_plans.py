"""Merges that store columns apart, under every physical plan and beside each other.

Java and pypaimon read the rows, and Java their ids.
"""

from __future__ import annotations

from unittest import mock

import pyarrow as pa
import pytest

from spark_jobs.connectors.paimon.commit.merge_writes import PaimonMergeWrites
from spark_jobs.contract.statements import (
    Assignment,
    DeleteAction,
    InsertAllAction,
    MergeCase,
    UpdateAction,
    UpdateAllAction,
)
from tests.judge.judge import read_with_java
from tests.judge.merging import delete, merge, overwrite, truncate, update
from tests.judge.writer import JavaTable
from tests.support.forced_plans import forced_plan
from tests.support.judged_values import differences

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int32()), ("w", pa.string()), ("p", pa.string())])
OPTIONS = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}


def rows_of(ids, value):
    ids = list(ids)
    columns = {"v": [value] * len(ids), "w": [f"w{value}"] * len(ids)}
    return pa.table({"id": ids, **columns, "p": ["xy"[n % 2] for n in ids]}, schema=SCHEMA)


def sets(*columns):
    return MergeCase("matched", UpdateAction(tuple(Assignment(c, f"s.{c}") for c in columns)))


@pytest.fixture
def table(warehouse):
    """A table of Java's, with ids 0 to 19 in two partitions."""
    made = JavaTable.create(warehouse.path, "d.t", SCHEMA, ["p"], OPTIONS)
    made.append(rows_of(range(20), 1))
    return made


def look(warehouse):
    """(v, w, row id) by id."""
    found = read_with_java(warehouse.path, "d.t", tracked=True)
    plain = [{n: row[n] for n in SCHEMA.names} for row in found]
    assert not differences(warehouse.both_readers("d.t"), plain)
    return {row["id"]: (row["v"], row["w"], row["_ROW_ID"]) for row in found}


def files_of_columns(warehouse):
    native = warehouse.table("d.t")
    splits = native.new_read_builder().new_scan().plan().splits()
    return [file.write_cols for split in splits for file in split.files if file.write_cols]


@pytest.mark.slow
@pytest.mark.parametrize("plan", ["join", "located", "prepared"])
def test_merges(spark, warehouse, table, plan):
    cases = [sets("v"), MergeCase("not_matched", InsertAllAction())]
    for start in (0, 4):
        before = look(warehouse)
        source = rows_of([*range(start, start + 4), 100 + start], 7 + start)
        with forced_plan(plan) as tally:
            result = merge(spark, warehouse, source, cases)
        assert result.error is None, result.error
        assert tally.ran == 1
        assert (result.metrics.updated, result.metrics.inserted) == (4, 1)
        after = look(warehouse)
        for key, (_, w, row_id) in before.items():
            value = 7 + start if start <= key < start + 4 else before[key][0]
            assert after[key] == (value, w, row_id)
        assert after[100 + start][:2] == (7 + start, f"w{7 + start}")
        assert after[100 + start][2] > max(row_id for _, _, row_id in before.values())
    assert files_of_columns(warehouse) == [["v"]] * 4
    table.append(rows_of([200], 3))
    table.compact()
    assert update(spark, warehouse, {"w": "concat(w, v)"}, "id < 3 OR id > 100").error is None
    assert look(warehouse)[200][:2] == (3, "w33")


@pytest.mark.slow
def test_other_statements(spark, warehouse, table):
    refused = [
        lambda: delete(spark, warehouse, "id = 2"),
        lambda: delete(spark, warehouse, "p = 'x'"),
        lambda: update(spark, warehouse, {"p": "'z'"}, "id < 3"),
        lambda: merge(spark, warehouse, rows_of([1], 2), [MergeCase("matched", DeleteAction())]),
    ]
    before = look(warehouse)
    for run in refused:
        assert run().error.code == "NOT_SUPPORTED"
    assert look(warehouse) == before
    assert update(spark, warehouse, {"v": "v + id"}, "id < 5").error is None
    assert overwrite(spark, warehouse, rows_of([9, 31], 2), "dynamic").error is None
    assert look(warehouse).keys() == {*range(0, 20, 2), 9, 31}
    assert truncate(spark, warehouse, {"p": "'y'"}).error is None
    assert look(warehouse) == {n: (1 + n * (n < 5), "w1", before[n][2]) for n in range(0, 20, 2)}


@pytest.mark.slow
def test_rows_that_keep_their_partition(spark, warehouse, table):
    """ON says that UPDATE * assigns the partition that the row has."""
    cases = [MergeCase("matched", UpdateAllAction()), MergeCase("not_matched", InsertAllAction())]
    before = look(warehouse)

    assert merge(spark, warehouse, rows_of([1], 5), cases).error.code == "NOT_SUPPORTED"
    on = "t.id = s.id AND t.p = s.p"
    result = merge(spark, warehouse, rows_of([1, 2, 40], 5), cases, on=on)

    assert result.error is None, result.error
    after = look(warehouse)
    assert after.pop(40)[:2] == (5, "w5")
    assert after == before | {n: (5, "w5", before[n][2]) for n in (1, 2)}
    assert files_of_columns(warehouse) == [["id", "v", "w"]] * 2
    result = update(spark, warehouse, {"p": "p"}, "id < 3")
    assert (result.error, result.status, result.metrics.updated) == (None, "unchanged", 3)


def beside(other):
    """Run ``other`` right before the next statement publishes."""
    real, waiting = PaimonMergeWrites.finish_merge, [other]

    def finish(self, *arguments):
        if waiting:
            waiting.pop()()
        return real(self, *arguments)

    return mock.patch.object(PaimonMergeWrites, "finish_merge", finish)


@pytest.mark.slow
@pytest.mark.by_turns(2)
@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_two_merges_at_once(spark, warehouse, table, isolation):
    """Of different columns both land at once; of the same column, one runs again."""

    def run(ids, value, column):
        result = merge(spark, warehouse, rows_of(ids, value), [sets(column)], isolation=isolation)
        assert result.error is None, result.error
        return result.metrics

    with beside(lambda: run(range(6), 5, "v")):
        metrics = run(range(3, 9), 6, "w")
    assert (metrics.attempts, metrics.snapshots_met) == (1, 1)
    with beside(lambda: run([1], 8, "v")):
        metrics = run([3], 9, "v")
    assert metrics.attempts == 2
    with beside(table.compact):
        metrics = run([5], 11, "v")
    assert metrics.attempts == 2

    values = [(5, "w1"), (8, "w1"), (5, "w1"), (9, "w6"), (5, "w6"), (11, "w6")]
    found = look(warehouse)
    assert [found[n][:2] for n in range(6)] == values
