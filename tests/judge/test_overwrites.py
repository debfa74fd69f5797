"""Partitions that are replaced here, and manifests that are merged here, as Java sees them."""

from __future__ import annotations

import pytest

from tests.judge.judge import facts_from_java
from tests.judge.merging import delete, overwrite, truncate
from tests.judge.test_java_tables import TABLES, check, java_table, rows_of
from tests.support.judged_values import from_arrow

_KINDS = ("partitioned", "partitioned deletion vectors", "buckets with deletion vectors")


def beside(rows, part):
    return [row for row in rows if row["part"] != part]


@pytest.mark.parametrize("name", _KINDS)
def test_replaced_partitions_of_a_table_of_java(spark, warehouse, name):
    _, options = TABLES[name]
    table, expected = java_table(warehouse, ["part"], options)

    # Ids that are multiples of three are in partition a.
    new = rows_of(range(300, 330, 3))
    replaced = overwrite(spark, warehouse, new, "dynamic")

    assert replaced.error is None, replaced.error
    expected = beside(expected, "a") + from_arrow(new)
    check(warehouse, expected)

    filled = rows_of(range(400, 404)).drop_columns(["part"])
    static = overwrite(spark, warehouse, filled, "static", {"part": "'b=c/d'"})

    assert static.error is None, static.error
    rows = [{**row, "part": "b=c/d"} for row in from_arrow(filled)]
    expected = beside(expected, "b=c/d") + rows
    check(warehouse, expected)

    cleared = truncate(spark, warehouse, {"part": "NULL"})

    assert cleared.error is None, cleared.error
    expected = beside(expected, None)
    check(warehouse, expected)

    table.append(rows_of(range(500, 510)))
    table.expire()

    expected += from_arrow(rows_of(range(500, 510)))
    check(warehouse, expected)
    live = {file.name for file in facts_from_java(warehouse.path, "d.t").files}
    assert {path.name for path in warehouse.path.rglob("*.parquet")} == live


def test_manifests_that_were_merged_here(spark, warehouse):
    options = {**TABLES["deletion vectors"][1], "manifest.merge-min-count": "3"}
    table, expected = java_table(warehouse, [], options)

    for id_ in (5, 12, 17, 22, 27):
        deleted = delete(spark, warehouse, f"t.id = {id_}")
        assert deleted.error is None, deleted.error
        expected = [row for row in expected if row["id"] != id_]
    check(warehouse, expected)

    table.append(rows_of(range(60, 70)))
    expected += from_arrow(rows_of(range(60, 70)))
    check(warehouse, expected)
