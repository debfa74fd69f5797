"""Java reads every type that a merge updates, inserts and carries over."""

from __future__ import annotations

import pyarrow as pa

from spark_jobs.contract.statements import InsertAllAction, MergeCase, UpdateAllAction
from tests.judge.judge import read_with_java
from tests.judge.merging import merge
from tests.judge.test_types import VALUES
from tests.judge.values import differences, from_arrow

# Spark 4.1 has no type TIME that it can read from files.
COLUMNS = {name.replace(" ", "_"): VALUES[name] for name in VALUES if name != "time"}
CASES = [MergeCase("matched", UpdateAllAction()), MergeCase("not_matched", InsertAllAction())]


def rows_of(ids, shift):
    """One row per id; value and NULL of each column change with id and ``shift``."""
    columns = {"id": pa.array(ids, pa.int64())}
    for name, (kind, values) in COLUMNS.items():
        known = [*values, None]
        columns[name] = pa.array([known[(id_ + shift) % len(known)] for id_ in ids], kind)
    return pa.table(columns)


def test_every_type(spark, warehouse):
    target, source = rows_of(range(20), 0), rows_of(range(10, 30), 3)
    warehouse.create("d.t", target.schema)
    warehouse.append("d.t", target)

    result = merge(spark, warehouse, source, CASES)

    assert result.error is None, result.error
    expected = from_arrow(target)[:10] + from_arrow(source)
    assert not differences(warehouse.both_readers("d.t"), expected)
    assert warehouse.checked_files("d.t")
    for name, low in (
        ("id", 5),
        ("string", "Zürich 東京 👩‍🚀"),
        ("double", "0.1"),
        ("bigint", 2**53 + 1),
    ):
        found = read_with_java(warehouse.path, "d.t", where=(name, low))
        wanted = [row for row in expected if row[name] == (0.1 if name == "double" else low)]
        assert wanted or name == "double"
        assert not [row for row in wanted if row not in found], name
