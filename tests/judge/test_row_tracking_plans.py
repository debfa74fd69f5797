"""Under every physical plan rows keep their ids, as Java's system table shows after each statement.

Java writes between the statements, and pypaimon and Java read the same rows.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from spark_jobs.contract.statements import (
    Assignment,
    DeleteAction,
    InsertAllAction,
    MergeCase,
    UpdateAction,
    UpdateAllAction,
)
from tests.judge.judge import read_with_java
from tests.judge.merging import delete, insert, merge, overwrite, truncate, update
from tests.judge.writer import JavaTable
from tests.support.forced_plans import forced_plan
from tests.support.judged_values import differences

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int32()), ("p", pa.string())])
IDENTITY = ("_ROW_ID", "_SEQUENCE_NUMBER")
KINDS = {"copy-on-write": {}, "deletion vectors": {"deletion-vectors.enabled": "true"}}
CASES = [
    MergeCase("matched", DeleteAction(), "s.v < 0"),
    MergeCase("matched", UpdateAction((Assignment("v", "s.v"),))),
    MergeCase("not_matched", InsertAllAction()),
]


def rows_of(ids, value):
    parts = ["xy"[id_ % 2] for id_ in ids]
    return pa.table({"id": list(ids), "v": [value] * len(parts), "p": parts}, schema=SCHEMA)


class Table:
    """A table of Java's, with ids 0 to 19, and what its rows are expected to be."""

    def __init__(self, warehouse, options):
        tracked = {"row-tracking.enabled": "true", **options}
        self.warehouse = warehouse
        self.java = JavaTable.create(warehouse.path, "d.t", SCHEMA, ["p"], tracked)
        self.java.append(rows_of(range(20), 1))
        self.ids = self.look()

    def look(self):
        """Row id and sequence number by id."""
        found = read_with_java(self.warehouse.path, "d.t", tracked=True)
        plain = [{n: value for n, value in row.items() if n not in IDENTITY} for row in found]
        assert not differences(self.warehouse.both_readers("d.t"), plain)
        seen = {row["id"]: (row["_ROW_ID"], row["_SEQUENCE_NUMBER"]) for row in found}
        assert len(seen) == len({row_id for row_id, _ in seen.values()}) == len(found)
        return seen

    def check(self, *, updated=(), deleted=(), inserted=()):
        """What a statement, which made the latest snapshot, did."""
        snapshot = self.warehouse.table("d.t").snapshot_manager().get_latest_snapshot()
        now, most = self.look(), max(row_id for row_id, _ in self.ids.values())
        assert now.keys() == {*self.ids, *inserted} - ({*deleted} - {*inserted})
        for key, (row_id, number) in now.items():
            if key in inserted:
                assert row_id > most
                assert number == snapshot.id
            else:
                was = self.ids[key]
                assert (row_id, number) == (was[0], snapshot.id if key in updated else was[1])
        self.ids = now


@pytest.mark.slow
@pytest.mark.parametrize("plan", ["join", "located", "prepared"])
@pytest.mark.parametrize("kind", KINDS)
def test_merges_keep_ids(spark, warehouse, kind, plan):
    table = Table(warehouse, KINDS[kind])
    for start in (0, 5, 10):
        kept, gone, new = range(start, start + 4), [start + 4], [100 + start, 101 + start]
        source = pa.concat_tables([rows_of(kept, start), rows_of(gone, -1), rows_of(new, 7)])
        with forced_plan(plan) as tally:
            result = merge(spark, warehouse, source, CASES)
        assert result.error is None, result.error
        assert tally.ran == 1
        table.check(updated=kept, deleted=gone, inserted=new)
        table.java.append(rows_of([200 + start], 3))
        table.check(inserted=[200 + start])
        table.java.compact()
        table.check()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_other_statements_keep_ids(spark, warehouse, kind):
    table = Table(warehouse, KINDS[kind])
    steps = [
        (lambda: update(spark, warehouse, {"v": "v + 1"}, "id < 5"), {"updated": range(5)}),
        (lambda: update(spark, warehouse, {"p": "'z'"}, "id < 3"), {"updated": range(3)}),
        (lambda: update(spark, warehouse, {"p": "'x'"}, "id = 1"), {"updated": [1]}),
        (lambda: delete(spark, warehouse, "id IN (2, 7)"), {"deleted": [2, 7]}),
        (lambda: insert(spark, warehouse, rows_of([7, 30], 2)), {"inserted": [7, 30]}),
        (
            lambda: overwrite(spark, warehouse, rows_of([9, 31], 2), "dynamic"),
            {"deleted": [3, 5, 7, 9, 11, 13, 15, 17, 19], "inserted": [9, 31]},
        ),
        (lambda: truncate(spark, warehouse, {"p": "'z'"}), {"deleted": [0]}),
    ]
    for run, effect in steps:
        result = run()
        assert result.error is None, result.error
        table.ids = {k: v for k, v in table.ids.items() if k not in effect.get("deleted", ())}
        table.check(**{name: keys for name, keys in effect.items() if name != "deleted"})


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_statement_with_schema_evolution_keeps_ids(spark, warehouse, kind):
    table = Table(warehouse, KINDS[kind])
    wider = rows_of([1, 2, 50], 4).append_column("n", pa.array([1, None, 3], pa.int32()))
    cases = [MergeCase("matched", UpdateAllAction()), MergeCase("not_matched", InsertAllAction())]

    result = merge(spark, warehouse, wider, cases, evolves=True)

    assert result.error is None, result.error
    table.check(updated=[1, 2], inserted=[50])
    assert {row["id"]: row["n"] for row in read_with_java(warehouse.path, "d.t")}[50] == 3
    assert update(spark, warehouse, {"n": "id"}, "id < 4").error is None
    table.check(updated=range(4))
