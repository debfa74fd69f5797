"""What Java commits between the plan of a statement and its publication, on one bucket."""

from __future__ import annotations

import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.errors import CommitError
from spark_jobs.spi import rows
from spark_jobs.spi.writes import MergeWrite, Operation
from tests.judge.writer import JavaTable
from tests.support.judged_values import differences
from tests.support.keyed_changes import KeyedChange, keyed_batches, keyed_rows, new_row
from tests.support.keyed_checker import problems_of
from tests.support.paimon_tables import store
from tests.support.turns import has_turn

KINDS = {"id": "INT NOT NULL", "v": "STRING", "p": "INT NOT NULL"}
NAME = TableName("d", "t")
REWRITES = {"merge-engine": "partial-update"}
DYNAMIC = {"bucket": "-1"}
MODES = {
    "append": {},
    "rewrite": REWRITES,
    "append to dynamic buckets": DYNAMIC,
    "rewrite dynamic buckets": {**DYNAMIC, **REWRITES},
}
SEED = {number: f"old {number}" for number in range(0, 40, 2)}


def row(number, text, p=0):
    return {"id": number, "v": text, "p": p}


@pytest.fixture
def java_table(warehouse, mode):
    options = {"bucket": "1", "write-only": "true", **MODES[mode]}
    table = JavaTable.of_types(warehouse.path, "d.t", KINDS, ["p"], options, ["p", "id"])
    records = [("+I", row(number, text, p)) for p in (0, 1) for number, text in SEED.items()]
    table.append_records(records[: len(SEED) + 5])
    table.append_records([("+U", row(0, "newer"))])
    return table


class Statement:
    """An UPDATE of key 2, a DELETE of key 4 and an INSERT of key 5, in partition 0."""

    def __init__(self, warehouse, isolation):
        self.connector = open_connector(CatalogSpec("paimon", str(warehouse.path)), {})
        self.table = self.connector.metadata.load_table(NAME)
        planned = self.connector.metadata.plan_files(self.table)
        files = [file for file in planned if file.partition["p"] == 0]
        found = {each["id"]: each for each in keyed_rows(self.connector, self.table, files)}
        changes = [
            KeyedChange(rows.UPDATE, {**found[2], "v": "updated"}),
            KeyedChange(rows.DELETE, found[4], case=1),
            new_row(row(5, "inserted")),
        ]
        write = MergeWrite(
            Operation("op", "digest", {}),
            tuple(files),
            (("v",), ()),
            (),
            2**27,
            isolation=isolation,
            read_set=lambda added: [each for each in added if each.partition["p"] == 0],
        )
        self.handle = self.connector.writes.begin_merge(self.table, write)
        self.fragments = store(self.handle, *keyed_batches(self.table, changes))

    def publish(self):
        writes = self.connector.writes
        try:
            writes.finish_merge(self.table, self.handle, self.fragments, {})
        except CommitError:
            writes.abort_merge(self.table, self.handle)
            raise
        finally:
            writes.release_guard(self.table, "op")


def in_partition_0(warehouse):
    found = warehouse.both_readers("d.t")
    return {each["id"]: each["v"] for each in found if each["p"] == 0}


# What Java does, and the modes in which the statement then has to run again.
REWRITING = {"rewrite", "rewrite dynamic buckets"}
BETWEEN = {
    "the same key": (lambda table: table.append_records([("+U", row(2, "Java"))]), {*MODES}),
    "another key": (lambda table: table.append_records([("+I", row(7, "Java"))]), {*MODES}),
    # The statement and Java both extend the index of dynamic buckets.
    "a key beyond": (
        lambda table: table.append_records([("+I", row(99, "Java"))]),
        {*MODES} - {"rewrite"},
    ),
    "a deleted key": (lambda table: table.append_records([("-D", row(8, "x"))]), {*MODES}),
    "another partition": (lambda table: table.append_records([("+I", row(5, "Java", 1))]), set()),
    "a compaction": (lambda table: table.compact(full=True), REWRITING),
}
# partial-update takes no deletes.
POSSIBLE = [
    (mode, what)
    for mode in MODES
    for what in BETWEEN
    if not (what == "a deleted key" and mode in REWRITING)
]
# A run takes a third of them, another third with MERGE_TESTS_TURN=1.
CASES = [each for number, each in enumerate(POSSIBLE) if has_turn(number, 3)]


@pytest.mark.parametrize(("mode", "what"), CASES)
def test_java_commits_before_the_statement_is_published(warehouse, java_table, mode, what):
    commit, conflicting = BETWEEN[what]
    statement = Statement(warehouse, "snapshot")
    commit(java_table)
    between = in_partition_0(warehouse)

    if mode in conflicting:
        with pytest.raises(CommitError, match="COMMIT_CONFLICT"):
            statement.publish()
        assert in_partition_0(warehouse) == between, "nothing was published"
        Statement(warehouse, "snapshot").publish()
    else:
        statement.publish()

    changed = {2: "updated", 5: "inserted"}
    expected = {key: text for key, text in (between | changed).items() if key != 4}
    assert in_partition_0(warehouse) == expected
    assert not problems_of(warehouse.table("d.t"))
    before = warehouse.both_readers("d.t")
    java_table.compact(full=True)
    assert not differences(warehouse.both_readers("d.t"), before)
