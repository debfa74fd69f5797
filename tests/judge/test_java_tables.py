"""Tables that Java wrote are changed here, and Java reads the result of every statement."""

from __future__ import annotations

import pyarrow as pa
import pytest

from spark_jobs.contract.statements import (
    DeleteAction,
    InsertAllAction,
    MergeCase,
    UpdateAllAction,
)
from tests.judge.judge import facts_from_java, read_with_java
from tests.judge.merging import delete, merge, update
from tests.judge.test_types import COLUMNS
from tests.judge.writer import JavaTable
from tests.support.judged_values import differences, from_arrow

CASES = [
    MergeCase("matched", DeleteAction(), "s.id % 3 = 0"),
    MergeCase("matched", UpdateAllAction()),
    MergeCase("not_matched", InsertAllAction()),
]
VECTORS = {"deletion-vectors.enabled": "true"}
BUCKETS = {"bucket": "3", "bucket-key": "id"}
INDEXES = {"file-index.bloom-filter.columns": "id,string"}
# Partition keys and options.
TABLES = {
    "unpartitioned": ([], {}),
    "partitioned": (["part"], {}),
    "another default partition": (["part"], {"partition.default-name": "no value"}),
    "embedded indexes": (["part"], {**INDEXES, "file-index.in-manifest-threshold": "9 mb"}),
    "index files": ([], INDEXES),
    "deletion vectors": ([], VECTORS),
    "partitioned deletion vectors": (["part"], VECTORS),
    "deletion vectors beside the data": (
        ["part"],
        {**VECTORS, "index-file-in-data-file-dir": "true"},
    ),
    "buckets": ([], BUCKETS),
    "partitioned buckets": (["part"], BUCKETS),
    "buckets with deletion vectors": (["part"], {**BUCKETS, **VECTORS}),
}


def rows_of(ids, shift=0):
    """Every type, and NULLs of each; two partitions and that of NULL."""
    columns = {"id": pa.array(ids, pa.int64())}
    columns["part"] = pa.array([("a", "b=c/d", None)[id_ % 3] for id_ in ids], pa.string())
    for name, (kind, values) in COLUMNS.items():
        known = [*values, None]
        columns[name] = pa.array([known[(id_ + shift) % len(known)] for id_ in ids], kind)
    return pa.table(columns)


def java_table(warehouse, keys, options):
    """Two commits of rows and, with deletion vectors, two commits of those; and what is left."""
    table = JavaTable.create(warehouse.path, "d.t", rows_of([]).schema, keys, options)
    table.append(rows_of(range(20)))
    table.append(rows_of(range(20, 40), 1))
    expected = from_arrow(rows_of(range(20))) + from_arrow(rows_of(range(20, 40), 1))
    if options.get("deletion-vectors.enabled") == "true":
        table.delete("id", [1, 2, 33])
        table.delete("id", [3, 34])
        expected = [row for row in expected if row["id"] not in (1, 2, 3, 33, 34)]
    return table, expected


def check(warehouse, expected):
    assert not differences(warehouse.both_readers("d.t"), expected)
    warehouse.checked_files("d.t")


# Others have the same and more.
EXTENDED = ("unpartitioned", "partitioned", "deletion vectors", "buckets")


@pytest.mark.by_turns(2)
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.extended) if n in EXTENDED else n for n in TABLES],
)
def test_statements_on_a_table_of_java(spark, warehouse, name):
    keys, options = TABLES[name]
    table, expected = java_table(warehouse, keys, options)
    check(warehouse, expected)
    assert bool(list(warehouse.path.rglob("*.index"))) is (name == "index files")

    changes = rows_of(range(10, 50), 2)
    merged = merge(spark, warehouse, changes, CASES)

    assert merged.error is None, merged.error
    known = {row["id"] for row in expected}
    expected = [row for row in expected if row["id"] < 10] + [
        row for row in from_arrow(changes) if row["id"] % 3 or row["id"] not in known
    ]
    check(warehouse, expected)

    deleted = delete(spark, warehouse, "t.id BETWEEN 5 AND 14 OR t.id = 48")

    assert deleted.error is None, deleted.error
    expected = [row for row in expected if not (5 <= row["id"] <= 14 or row["id"] == 48)]
    check(warehouse, expected)

    updated = update(spark, warehouse, {"string": "'changed'", "float": "NULL"}, "t.id % 4 = 0")

    assert updated.error is None, updated.error
    new = {"string": "changed", "float": None}
    expected = [{**row, **new} if row["id"] % 4 == 0 else row for row in expected]
    check(warehouse, expected)

    # Java goes on from what was written here, and then needs nothing of what was there before.
    table.append(rows_of(range(100, 110)))
    table.expire()

    expected += from_arrow(rows_of(range(100, 110)))
    check(warehouse, expected)
    live = {file.name for file in facts_from_java(warehouse.path, "d.t").files}
    assert {path.name for path in warehouse.path.rglob("*.parquet")} == live
    assert {path.stem for path in warehouse.path.rglob("*.index")} <= live
    for id_ in (7, 16, 20, 40, 104):
        wanted = [row for row in expected if row["id"] == id_]
        found = read_with_java(warehouse.path, "d.t", where=("id", id_))
        assert not [row for row in wanted if row not in found], id_


def test_large_vectors_of_both_writers(spark, warehouse):
    """Runs, bitmaps and arrays of Java's, and those that are written here on top of them."""
    options = {**VECTORS, "merge.deletion-vectors.rewrite-share": "1"}
    rows = pa.table({"id": pa.array(range(200_000), pa.int64())})
    table = JavaTable.create(warehouse.path, "d.t", rows.schema, (), options)
    table.append(rows)
    gone = {*range(0, 65_536, 3), *range(65_536, 131_072), 131_500, 199_999}
    table.delete("id", sorted(gone))

    deleted = delete(spark, warehouse, "t.id % 10 = 1 OR t.id BETWEEN 131072 AND 190000")

    assert deleted.error is None, deleted.error
    left = [i for i in range(131_072) if i not in gone and i % 10 != 1]
    left += [i for i in range(190_001, 199_999) if i % 10 != 1]
    found = read_with_java(warehouse.path, "d.t")
    assert sorted(row["id"] for row in found) == left
    assert len(facts_from_java(warehouse.path, "d.t").files) == 1, "the file stays"
    assert deleted.metrics.deleted == 200_000 - len(gone) - len(left)


def test_vectors_of_a_bucket_stay_when_java_adds_others(spark, warehouse):
    """Java takes a bucket for one index file when it writes the next one, in any bucket."""
    rows = pa.schema([("id", pa.int64()), ("part", pa.string())])
    options = {**VECTORS, "bucket": "1", "bucket-key": "id"}
    table = JavaTable.create(warehouse.path, "d.t", rows, ["part"], options)
    for start in range(0, 40, 10):
        ids = range(start, start + 10)
        table.append(pa.table({"id": ids, "part": ["a" if i % 2 else "b" for i in ids]}, rows))
    table.delete("id", [1])

    for where in ("t.id = 11", "t.id IN (12, 13, 23, 33)"):
        deleted = delete(spark, warehouse, where)
        assert deleted.error is None, deleted.error
    table.delete("id", [2])

    left = [i for i in range(40) if i not in (1, 2, 11, 12, 13, 23, 33)]
    assert sorted(row["id"] for row in read_with_java(warehouse.path, "d.t")) == left
    assert sorted(row["id"] for row in warehouse.both_readers("d.t")) == left
