"""Branches that Java made are targets and sources, and Java reads what became of each."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, JobRequest, TableName, TableSource
from spark_jobs.contract.statements import (
    DeleteAction,
    InsertAllAction,
    MergeCase,
    MergeSpec,
    UpdateAllAction,
)
from spark_jobs.run import run
from spark_jobs.spi.writes import MergeWrite, Operation
from tests.judge.judge import read_with_java
from tests.judge.merging import delete, update
from tests.judge.writer import JavaTable

CASES = (
    MergeCase("matched", DeleteAction(), "s.v = 'go'"),
    MergeCase("matched", UpdateAllAction()),
    MergeCase("not_matched", InsertAllAction()),
)


def rows_of(*rows):
    return pa.table(
        {
            "id": pa.array([id_ for id_, _ in rows], pa.int64()),
            "v": pa.array([v for _, v in rows], pa.string()),
            "part": pa.array([id_ % 2 for id_, _ in rows], pa.int32()),
        }
    )


def merge_tables(spark, warehouse, target, source):
    request = JobRequest(
        operation_id=str(uuid.uuid4()),
        target=TableName.parse(target),
        catalog=CatalogSpec("paimon", str(warehouse.path)),
        statement=MergeSpec("s", "t.id = s.id", CASES, "t", "s"),
        sources=(TableSource("s", TableName.parse(source)),),
    )
    return run(request, spark)


def found(warehouse, branch=None):
    """What Java reads, as (id, v)."""
    rows = read_with_java(warehouse.path, "d.t", branch=branch)
    return sorted((row["id"], row["v"]) for row in rows)


@pytest.mark.parametrize("vectors", ["false", "true"])
def test_branches_as_target_and_source(spark, warehouse, vectors):
    options = {"deletion-vectors.enabled": vectors}
    main = JavaTable.create(warehouse.path, "d.t", rows_of().schema, ["part"], options)
    main.append(rows_of((1, "a"), (2, "b"), (3, "c"), (4, "d")))
    if vectors == "true":
        main.delete("id", [4])
    branch = main.new_branch("b")
    main.append(rows_of((2, "go"), (8, "h")))
    other = JavaTable.create(warehouse.path, "d.s", rows_of().schema)
    other.append(rows_of((1, "A"), (2, "go"), (5, "e")))
    kept = [(4, "d")] if vectors == "false" else []

    main_rows = found(warehouse)
    merged = merge_tables(spark, warehouse, "d.t$branch_b", "d.s")

    assert merged.error is None, merged.error
    expected = sorted([(1, "A"), (3, "c"), (5, "e"), *kept])
    assert found(warehouse, "b") == expected
    assert found(warehouse) == main_rows

    for result in (
        delete(spark, warehouse, "t.id = 3", "d.t$branch_b"),
        update(spark, warehouse, {"v": "'go'"}, "t.id = 1", "d.t$branch_b"),
    ):
        assert result.error is None, result.error
    branch.append(rows_of((7, "java")))
    expected = sorted([(1, "go"), (5, "e"), (7, "java"), *kept])
    assert found(warehouse, "b") == expected
    assert found(warehouse) == main_rows

    # From the branch into a table of its own: row 1 goes, 2 stays.
    merged = merge_tables(spark, warehouse, "d.s", "d.t$branch_b")

    assert merged.error is None, merged.error
    rows = read_with_java(warehouse.path, "d.s")
    wanted = sorted([(2, "go"), (5, "e"), (7, "java"), *kept])
    assert sorted((row["id"], row["v"]) for row in rows) == wanted


def test_a_branch_into_its_own_main(spark, warehouse):
    main = JavaTable.create(warehouse.path, "d.t", rows_of().schema)
    main.append(rows_of((1, "a"), (2, "b")))
    branch = main.new_branch("b")
    branch.append(rows_of((3, "c")))
    assert update(spark, warehouse, {"v": "'B'"}, "t.id = 2", "d.t$branch_b").error is None
    assert update(spark, warehouse, {"v": "'go'"}, "t.id = 1", "d.t$branch_b").error is None

    merged = merge_tables(spark, warehouse, "d.t", "d.t$branch_b")

    assert merged.error is None, merged.error
    assert found(warehouse) == [(2, "B"), (3, "c")]
    assert found(warehouse, "b") == [(1, "go"), (2, "B"), (3, "c")]


def test_expiry_by_java_keeps_the_base_of_a_running_statement(warehouse):
    main = JavaTable.create(warehouse.path, "d.t", rows_of().schema)
    main.append(rows_of((1, "a")))
    branch = main.new_branch("b")
    connector = open_connector(CatalogSpec("paimon", str(warehouse.path)), {})
    table = connector.metadata.load_table(TableName("d", "t$branch_b"))
    operation = Operation("mine", "digest", {})
    connector.writes.begin_merge(table, MergeWrite(operation, (), ((),), (), 2**27))
    branch.append(rows_of((2, "b")))

    branch.expire()

    snapshots = warehouse.path / "d.db/t/branch/branch-b/snapshot"
    assert (snapshots / "snapshot-1").exists()
    connector.writes.release_guard(table, "mine")
    branch.expire()
    assert not (snapshots / "snapshot-1").exists()


def test_expiry_by_java_leaves_both_readable(spark, warehouse):
    main = JavaTable.create(warehouse.path, "d.t", rows_of().schema)
    main.append(rows_of((1, "a"), (2, "b")))
    branch = main.new_branch("b")
    assert update(spark, warehouse, {"v": "'B'"}, "t.id = 2", "d.t$branch_b").error is None
    assert delete(spark, warehouse, "t.id = 1", "d.t").error is None

    branch.expire()
    main.expire()

    assert found(warehouse) == [(2, "b")]
    assert found(warehouse, "b") == [(1, "a"), (2, "B")]
