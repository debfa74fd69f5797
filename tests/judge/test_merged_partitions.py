"""Java finds rows that merges wrote into partitions with special values, old and new ones."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from spark_jobs.contract.statements import (
    DeleteAction,
    InsertAllAction,
    MergeCase,
    UpdateAllAction,
)
from tests.judge.judge import facts_from_java, read_with_java
from tests.judge.merging import merge
from tests.judge.test_partitions import PARTITIONS
from tests.support.judged_values import differences, from_arrow

CASES = [
    MergeCase("matched", DeleteAction(), "s.v = 'delete'"),
    MergeCase("matched", UpdateAllAction()),
    MergeCase("not_matched", InsertAllAction()),
]
# A table for each of these; the last has a partition key of each other kind.
KEYS = {
    "string": ["string"],
    "blank": ["blank"],
    "typed": ["int", "bigint", "boolean", "float", "double", "date", "decimal", "timestamp"],
}


def table_of(keys, rows):
    """Rows of (number of the value in each key, id, v)."""
    columns = {}
    for key in keys:
        kind, values = PARTITIONS[key]
        columns[key] = pa.array([values[number % len(values)] for number, _, _ in rows], kind)
    columns["id"] = pa.array([id_ for _, id_, _ in rows], pa.int64())
    columns["v"] = pa.array([text for _, _, text in rows], pa.string())
    return pa.table(columns)


@pytest.mark.parametrize(
    ("name", "options"),
    [*((name, {}) for name in KEYS), ("string", {"data-file.path-directory": "data"})],
)
def test_special_values(spark, warehouse, name, options):
    keys = KEYS[name]
    count = max(len(PARTITIONS[key][1]) for key in keys)
    # Of each old value one row stays, one changes, one goes; half of the inserted values are new.
    known = [(i, 10 * i + j, "old") for i in range(0, count, 2) for j in range(3)]
    changed = [(i, id_, "new" if id_ % 10 == 1 else "delete") for i, id_, _ in known if id_ % 10]
    inserted = [(i, 10 * i + 9, "inserted") for i in range(count)]
    target = table_of(keys, known)
    warehouse.create("d.t", target.schema, keys, options=options)
    warehouse.append("d.t", target)

    result = merge(spark, warehouse, table_of(keys, changed + inserted), CASES)

    assert result.error is None, result.error
    kept = [row for row in known if row[1] % 10 == 0]
    updated = [row for row in changed if row[2] == "new"]
    expected = from_arrow(table_of(keys, kept + updated + inserted))
    assert not differences(warehouse.both_readers("d.t"), expected)
    warehouse.checked_files("d.t")
    partitions = facts_from_java(warehouse.path, "d.t").partitions
    assert sum(each.rows for each in partitions) == len(expected)
    assert len(partitions) == count
    check_filters(warehouse, keys, expected)


def check_filters(warehouse, keys, expected):
    """Java finds exactly the rows of a partition by a filter on its key."""
    for key in keys:
        kind, values = PARTITIONS[key]
        for value in () if pa.types.is_timestamp(kind) else values:
            found = read_with_java(warehouse.path, "d.t", where=(key, literal(value)))
            text = str(pa.scalar(value, kind).as_py())
            assert not differences(found, [row for row in expected if str(row[key]) == text]), value


def literal(value):
    if isinstance(value, date):
        return (value - date(1970, 1, 1)).days
    return str(value) if isinstance(value, Decimal) else value
