"""Java compacts the buckets of a table that was merged here, and the next merge goes on."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pyarrow as pa
import pytest

from spark_jobs.contract.statements import (
    DeleteAction,
    InsertAllAction,
    MergeCase,
    UpdateAllAction,
)
from tests.judge.judge import facts_from_java, misplaced_for_java
from tests.judge.merging import delete, merge, update
from tests.judge.writer import JavaTable

SCHEMA = pa.schema({"id": pa.int64(), "p": pa.int32(), "note": pa.string()})
CASES = [
    MergeCase("matched", DeleteAction(), "s.note = 'gone'"),
    MergeCase("matched", UpdateAllAction()),
    MergeCase("not_matched", InsertAllAction()),
]


def rows(ids, note):
    return pa.Table.from_pylist([{"id": i, "p": i % 2, "note": note} for i in ids], SCHEMA)


def content(warehouse):
    """``note`` by ``id``, on which Java and pypaimon agree."""
    return {row["id"]: row["note"] for row in warehouse.both_readers("d.t")}


def files_of_buckets(warehouse):
    return Counter((each.partition, each.bucket) for each in warehouse.checked_files("d.t"))


@pytest.mark.parametrize(
    "marks_rows",
    [
        # Java compacts both alike; with deletion vectors it has more to do.
        pytest.param(False, id="copy-on-write", marks=pytest.mark.extended),
        pytest.param(True, id="deletion vectors"),
    ],
)
def test_merged_buckets_are_compacted_and_merged_again(spark, warehouse, marks_rows):
    options = {"bucket": "3", "bucket-key": "id", "write-only": "true"}
    if marks_rows:
        options["deletion-vectors.enabled"] = "true"
    table = JavaTable.create(warehouse.path, "d.t", SCHEMA, ["p"], options)
    for start in range(0, 60, 12):
        table.append(rows(range(start, start + 12), "java"))
    changes = pa.concat_tables([rows(range(0, 60, 7), "gone"), rows(range(1, 90, 7), "merged")])
    assert merge(spark, warehouse, changes, CASES).error is None
    assert delete(spark, warehouse, "t.id % 10 = 3").error is None
    expected = content(warehouse)
    before = files_of_buckets(warehouse)

    table.compact()

    facts = facts_from_java(warehouse.path, "d.t")
    last = max(facts.snapshots, key=lambda each: each["id"])
    assert last["commitKind"] == "COMPACT", [(s["id"], s["commitKind"]) for s in facts.snapshots]
    assert content(warehouse) == expected
    after = files_of_buckets(warehouse)
    assert before.keys() == after.keys()
    assert set(after.values()) == {1} != set(before.values())
    assert sum(each.rows for each in facts.files) == len(expected), "no row is only marked"
    assert misplaced_for_java(warehouse.path, "d.t") == []

    again = update(spark, warehouse, {"note": "'again'"}, "t.id BETWEEN 20 AND 40")
    assert again.error is None
    assert again.metrics.updated == sum(20 <= each <= 40 for each in expected)
    expected |= {each: "again" for each in expected if 20 <= each <= 40}
    assert content(warehouse) == expected
    assert misplaced_for_java(warehouse.path, "d.t") == []


def test_an_ordered_bucket_keeps_its_order_through_merges(spark, warehouse):
    """Java's full compaction may not: it takes the files as they lie in a heap, not by sequence."""
    options = {"bucket": "1", "bucket-key": "p", "write-only": "true"}
    table = JavaTable.create(warehouse.path, "d.t", SCHEMA, (), options)
    for start in (0, 10, 20):
        table.append(rows(range(start, start + 10), "java"))
    assert update(spark, warehouse, {"note": "'here'"}, "t.id BETWEEN 3 AND 12").error is None
    added = rows(range(100, 105), "here")
    assert merge(spark, warehouse, added, CASES).error is None
    order = [row["id"] for row in warehouse.both_readers("d.t")]
    assert order[:30] == [*range(30)]

    table.compact()
    table.append(rows(range(200, 205), "java"))

    found = [row["id"] for row in warehouse.both_readers("d.t")]
    assert (sorted(found[:-5]), found[-5:]) == (sorted(order), [*range(200, 205)])
    files = facts_from_java(warehouse.path, "d.t").files
    ranges = sorted(file.sequence_numbers for file in files)
    assert len(ranges) == 2
    assert all(before[1] < after[0] for before, after in pairwise(ranges))
