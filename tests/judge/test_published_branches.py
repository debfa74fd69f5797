"""Java reads and continues main and branch before, between and after a publication."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.maintenance import CreateBranchSpec, DeleteBranchSpec, FastForwardSpec
from spark_jobs.contract.properties import OPERATION_ID
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.spi.branches import Publishing
from tests.judge.judge import changelog_from_java, facts_from_java, read_with_java
from tests.judge.writer import JavaTable
from tests.support.judged_values import from_arrow

NAME = TableName("d", "t")
KINDS = {
    "vectors": ({"deletion-vectors.enabled": "true"}, ()),
    "rewritten": ({}, ()),
    "buckets": ({"bucket": "2", "bucket-key": "id"}, ()),
    "tracked": ({"row-tracking.enabled": "true"}, ()),
    "key": ({"bucket": "2"}, ("id",)),
    "input": ({"bucket": "2", "changelog-producer": "input"}, ("id",)),
}


def rows_of(*ids, v="a"):
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "v": pa.array([v] * len(ids), pa.string()),
            "part": pa.array([each % 2 for each in ids], pa.int32()),
        }
    )


class Lines:
    """A table and its branch ``b``, both written by Java."""

    def __init__(self, warehouse, options, key):
        self.path = warehouse.path
        kinds = {"id": "BIGINT NOT NULL" if key else "BIGINT", "v": "STRING", "part": "INT"}
        keys = (*key, "part") if key else ()
        if key:
            kinds["part"] = "INT NOT NULL"
        self.main = JavaTable.of_types(self.path, "d.t", kinds, ["part"], options, keys)
        self.branch = replace(self.main, branch="b")
        catalog = CatalogSpec("paimon", str(self.path))
        self.connector = open_connector(catalog, {})

    def begin(self):
        self.connector.branches.create_branch(NAME, CreateBranchSpec("b"))

    def publish(self, operation_id="p"):
        publishing = Publishing({OPERATION_ID: operation_id})
        to = FastForwardSpec("b")
        return self.connector.branches.fast_forward(NAME, to, publishing, dry_run=False)

    def end(self):
        self.connector.branches.delete_branch(NAME, DeleteBranchSpec("b"), dry_run=False)

    def read(self, **which):
        found = read_with_java(self.path, "d.t", **which)
        return sorted((row["id"], row["v"]) for row in found)


@pytest.mark.parametrize("kind", KINDS)
def test_java_goes_on_at_each_side(warehouse, kind):
    lines = Lines(warehouse, *KINDS[kind])

    def append(table, rows):
        table.append_rows(from_arrow(rows))

    append(lines.main, rows_of(1, 2, 3, 4))
    lines.begin()
    assert lines.read(branch="b") == lines.read() == [(n, "a") for n in (1, 2, 3, 4)]

    append(lines.branch, rows_of(5, 6, v="b"))
    if kind == "vectors":
        lines.branch.delete("id", [1])
    if kind == "key":
        lines.branch.append_records([("-D", row) for row in from_arrow(rows_of(1))])
        lines.branch.compact()
    gone = 1 if kind in ("vectors", "key") else 0
    wanted = [(n, "a") for n in (1, 2, 3, 4)[gone:]] + [(5, "b"), (6, "b")]
    assert lines.read() == [(n, "a") for n in (1, 2, 3, 4)]
    assert lines.read(branch="b") == wanted

    assert lines.publish().snapshot_id == 2

    assert lines.read() == lines.read(branch="b") == wanted
    assert lines.read(snapshot=1) == [(n, "a") for n in (1, 2, 3, 4)]
    if kind == "input":
        told = changelog_from_java(lines.path, "d.t", 2)
        assert sorted((how, row["id"]) for how, row in told) == [("+I", 5), ("+I", 6)]
    branch = lines.branch
    append(lines.main, rows_of(7, v="m"))
    append(branch, rows_of(8, v="n"))
    assert lines.read() == [*wanted, (7, "m")]
    assert lines.read(branch="b") == [*wanted, (8, "n")]

    # Java drops what only old snapshots need, without a look at the other side.
    for table in (lines.main, branch):
        table.compact()
        table.expire()
    assert lines.read() == [*wanted, (7, "m")]
    assert lines.read(branch="b") == [*wanted, (8, "n")]

    lines.end()
    lines.main.expire()
    append(lines.main, rows_of(9, v="e"))
    assert lines.read() == [*wanted, (7, "m"), (9, "e")]


def test_the_tag_keeps_the_base_from_expiry_by_java(warehouse):
    lines = Lines(warehouse, *KINDS["rewritten"])
    lines.main.append(rows_of(1, 2))
    lines.begin()
    for number in range(3):
        lines.main.append(rows_of(10 + number))
        lines.main.compact()
    lines.main.expire()

    assert lines.read(branch="b") == [(1, "a"), (2, "a")]


def test_java_forwards_and_drops_such_a_branch(warehouse):
    lines = Lines(warehouse, *KINDS["rewritten"])
    lines.main.append(rows_of(1))
    lines.begin()
    lines.branch.append(rows_of(2))

    lines.main.forward("b")
    lines.main.drop_branch("b")

    assert lines.read() == [(1, "a"), (2, "a")]
    lines.end()  # the tag that is left
    lines.begin()
    assert lines.read(branch="b") == lines.read()


def test_a_branch_that_java_made_is_published(warehouse):
    lines = Lines(warehouse, *KINDS["vectors"])
    lines.main.append(rows_of(1))
    branch = lines.main.new_branch("b")
    branch.alter(("add", ["n"], "INT"))
    branch = replace(branch, kinds={**branch.kinds, "n": "INT"})
    branch.append_rows([{"id": 2, "v": "b", "part": 0, "n": 7}])

    assert lines.publish().snapshot_id == 2

    found = {row["id"]: row["n"] for row in read_with_java(lines.path, "d.t")}
    assert found == {1: None, 2: 7}
    lines.main.reloaded().append_rows([{"id": 3, "v": "m", "part": 1, "n": 8}])
    assert [id_ for id_, _ in lines.read()] == [1, 2, 3]


def test_a_compaction_changes_no_row(warehouse):
    lines = Lines(warehouse, *KINDS["rewritten"])
    for number in range(6):
        lines.main.append(rows_of(2 * number))
    lines.begin()
    lines.branch.compact()

    assert lines.publish().snapshot_id == 7

    facts = facts_from_java(lines.path, "d.t")
    newest = max(facts.snapshots, key=lambda each: each["id"])
    assert (newest["id"], newest["commitKind"]) == (7, "COMPACT")
    assert len(facts.files) == 1
    assert lines.read() == [(2 * number, "a") for number in range(6)]
