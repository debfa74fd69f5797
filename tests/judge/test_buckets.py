"""Rows of tables with fixed buckets lie where Java's writer would put them, in its order."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest

from spark_jobs.contract.statements import InsertAllAction, MergeCase, UpdateAllAction
from tests.judge.judge import facts_from_java, misplaced_for_java, read_with_java
from tests.judge.merging import merge, update
from tests.judge.test_types import COLUMNS
from tests.judge.writer import JavaTable
from tests.support.judged_values import differences, from_arrow

CASES = [MergeCase("matched", UpdateAllAction()), MergeCase("not_matched", InsertAllAction())]
KEYS = {name: kind for name, (kind, _) in COLUMNS.items() if not pa.types.is_nested(kind)}


def rows_of(ids, shift):
    columns = {"id": pa.array(ids, pa.int64())}
    for name, kind in KEYS.items():
        known = [*COLUMNS[name][1], None]
        columns[name] = pa.array([known[(id_ + shift) % len(known)] for id_ in ids], kind)
    return pa.table(columns)


# The key of all columns has each type, too.
ALONE = [pytest.param(name, marks=pytest.mark.extended) for name in KEYS]


@pytest.mark.parametrize("key", [*ALONE, ",".join(reversed(KEYS))])
def test_new_and_moved_rows_are_in_java_s_buckets(spark, warehouse, key):
    """Keys of every type, NULL among them, assigned by a merge and written into new rows."""
    options = {"bucket": "11", "bucket-key": key}
    table = JavaTable.create(warehouse.path, "d.t", rows_of([], 0).schema, (), options)
    table.append(rows_of(range(20), 0))
    assert misplaced_for_java(warehouse.path, "d.t") == []
    changes = rows_of(range(10, 30), 1)

    merged = merge(spark, warehouse, changes, CASES)

    assert merged.error is None, merged.error
    expected = from_arrow(rows_of(range(10), 0)) + from_arrow(changes)
    assert not differences(read_with_java(warehouse.path, "d.t"), expected)
    assert misplaced_for_java(warehouse.path, "d.t") == []


def test_java_keeps_the_order_of_files_that_were_rewritten_here(spark, warehouse):
    """An ordered table: a rewritten file keeps its place, new rows come last, Java goes on."""
    schema = pa.schema({"id": pa.int64(), "key": pa.int32(), "note": pa.string()})
    options = {"bucket": "1", "bucket-key": "key", "write-only": "true"}
    table = JavaTable.create(warehouse.path, "d.t", schema, (), options)
    for start in (0, 10, 20):
        table.append(numbered(range(start, start + 10), schema))

    first = update(spark, warehouse, {"note": "'first'"}, "t.id BETWEEN 3 AND 12")
    added = numbered(range(100, 105), schema)
    second = merge(spark, warehouse, added, [MergeCase("not_matched", InsertAllAction())])
    table.append(numbered(range(200, 205), schema))

    assert (first.error, second.error) == (None, None)
    ids = [row["id"] for row in read_with_java(warehouse.path, "d.t")]
    # New rows of one merge have no order among themselves.
    assert [*ids[:30], *sorted(ids[30:35]), *ids[35:]] == [
        *range(30),
        *range(100, 105),
        *range(200, 205),
    ]
    ranges = sorted(file.sequence_numbers for file in facts_from_java(warehouse.path, "d.t").files)
    assert ranges == [(0, 9), (10, 19), (20, 29), (30, 34), (35, 39)]
    assert all(before[1] < after[0] for before, after in pairwise(ranges))


def numbered(ids, schema):
    values = [{"id": id_, "key": id_ % 3, "note": str(id_)} for id_ in ids]
    return pa.Table.from_pylist(values, schema=schema)
