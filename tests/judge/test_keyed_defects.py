"""What goes wrong with Paimon's own statements on tables with a primary key, and not here."""

from __future__ import annotations

import pyarrow as pa
import pytest

from spark_jobs.contract.statements import (
    Assignment,
    DeleteAction,
    InsertAllAction,
    MergeCase,
    UpdateAction,
)
from tests.judge.merging import merge, update
from tests.judge.writer import JavaTable
from tests.support.judged_values import differences, from_arrow
from tests.support.keyed_checker import problems_of

KINDS = {"id": "INT NOT NULL", "v": "STRING", "w": "INT", "seq": "INT"}
SCHEMA = pa.schema([("id", pa.int32()), ("v", pa.string()), ("w", pa.int32()), ("seq", pa.int32())])
UPSERT = (
    MergeCase("matched", UpdateAction(tuple(Assignment(n, f"s.{n}") for n in ("v", "w", "seq")))),
    MergeCase("not_matched", InsertAllAction()),
)


def rows(*values):
    return from_arrow(source(*values))


def source(*values):
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, each, strict=True)) for each in values])


@pytest.fixture
def new_table(warehouse):
    """A function that makes a table in which batch readers see these rows."""

    def make(options, *values):
        table = JavaTable.of_types(
            warehouse.path, "d.t", KINDS, [], {"bucket": "1", **options}, ["id"]
        )
        table.append_records([("+I", row) for row in rows(*values)])
        return table

    return make


def require(warehouse, table, *expected):
    """The rows, before and after Java has compacted the table."""
    for _ in range(2):
        assert not differences(warehouse.both_readers("d.t"), rows(*expected))
        assert not problems_of(warehouse.table("d.t"))
        table.compact(full=True)


def test_a_merge_that_deletes_leaves_a_partial_update_table_readable(spark, warehouse, new_table):
    table = new_table({"merge-engine": "partial-update"}, (1, "a", 1, 1), (2, "b", 2, 1))
    clauses = (MergeCase("matched", DeleteAction(), "s.w = 0"), *UPSERT)

    result = merge(spark, warehouse, source((1, None, 0, 2), (3, "c", 3, 2)), clauses)

    assert result.error is None
    require(warehouse, table, (2, "b", 2, 1), (3, "c", 3, 2))


def test_null_is_stored_in_a_partial_update_table(spark, warehouse, new_table):
    table = new_table({"merge-engine": "partial-update"}, (1, "a", 1, 1), (2, "b", 2, 1))

    assert update(spark, warehouse, {"v": "NULL"}, "id = 1").error is None
    require(warehouse, table, (1, None, 1, 1), (2, "b", 2, 1))

    result = merge(spark, warehouse, source((2, None, None, 2)), UPSERT)

    assert result.error is None
    require(warehouse, table, (1, None, 1, 1), (2, None, None, 2))


@pytest.mark.parametrize("compacts", [False, True])
def test_a_row_behind_a_deleted_one_of_larger_sequence(spark, warehouse, new_table, compacts):
    table = new_table({"sequence.field": "seq"}, (1, "a", 1, 1), (2, "b", 2, 1))
    table.append_records([("-D", row) for row in rows((1, "a", 1, 100))])
    if compacts:
        table.compact(full=True)

    result = merge(spark, warehouse, source((1, "new", 5, 5)), UPSERT)

    assert result.error is None
    assert result.metrics.inserted == 1
    require(warehouse, table, (1, "new", 5, 5), (2, "b", 2, 1))


def test_an_update_that_lowers_the_sequence_stays(spark, warehouse, new_table):
    table = new_table({"sequence.field": "seq"}, (1, "a", 1, 50), (2, "b", 2, 1))

    assert update(spark, warehouse, {"seq": "3", "v": "'low'"}, "id = 1").error is None

    require(warehouse, table, (1, "low", 1, 3), (2, "b", 2, 1))


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update"])
def test_a_value_is_the_same_before_and_after_a_compaction(spark, warehouse, new_table, engine):
    """Statements and Java's commits in turns: no two records of a key have the same number."""
    table = new_table({"merge-engine": engine}, (1, "a", 1, 1), (2, "b", 2, 1))
    for number in range(3):
        result = merge(spark, warehouse, source((1, f"ours {number}", number, 1)), UPSERT)
        assert result.error is None
        assert not problems_of(warehouse.table("d.t"))
        table.append_records([("+I", row) for row in rows((2, f"Java {number}", number, 1))])
        assert not problems_of(warehouse.table("d.t"))

    require(warehouse, table, (1, "ours 2", 2, 1), (2, "Java 2", 2, 1))
    table.append_records([("+I", row) for row in rows((1, "last", 9, 9))])
    require(warehouse, table, (1, "last", 9, 9), (2, "Java 2", 2, 1))
