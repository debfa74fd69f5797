"""Tables of Java whose data files lie elsewhere are changed here, and read and expired by Java."""

from __future__ import annotations

import pyarrow as pa
import pytest

from spark_jobs.contract.statements import InsertAllAction, MergeCase, UpdateAllAction
from tests.judge.judge import facts_from_java
from tests.judge.merging import delete, merge, update
from tests.judge.writer import JavaTable
from tests.support.judged_values import differences, from_arrow

CASES = [MergeCase("matched", UpdateAllAction()), MergeCase("not_matched", InsertAllAction())]


def rows_of(ids, v):
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "v": pa.array([v for _ in ids], pa.string()),
            "part": pa.array([("a=b", None)[id_ % 2] for id_ in ids], pa.string()),
        }
    )


VECTORS = {"deletion-vectors.enabled": "true"}
BUCKETS = {"bucket": "2", "bucket-key": "id"}


@pytest.mark.by_turns(3)
@pytest.mark.parametrize("kind", [{}, VECTORS, {**BUCKETS, **VECTORS}], ids=repr)
def test_statements_on_a_table_with_files_elsewhere(spark, warehouse, tmp_path, kind):
    roots = [tmp_path / "first root %20", tmp_path / "second"]
    options = {
        "data-file.external-paths": ",".join(f"file://{root}" for root in roots),
        "data-file.external-paths.strategy": "round-robin",
        "file-index.bloom-filter.columns": "id",
        **kind,
    }
    table = JavaTable.create(warehouse.path, "d.t", rows_of([], "").schema, ["part"], options)
    table.append(rows_of(range(10), "old"))
    table.append(rows_of(range(10, 20), "old"))
    gone = [3, 4] if "deletion-vectors.enabled" in kind else []
    if gone:
        table.delete("id", gone)

    merged = merge(spark, warehouse, rows_of(range(8, 23), "new"), CASES)

    assert merged.error is None, merged.error
    kept = [id_ for id_ in range(8) if id_ not in gone]
    expected = from_arrow(rows_of(kept, "old")) + from_arrow(rows_of(range(8, 23), "new"))
    assert not differences(warehouse.both_readers("d.t"), expected)

    deleted = delete(spark, warehouse, "t.id IN (0, 9, 21)")

    assert deleted.error is None, deleted.error
    expected = [row for row in expected if row["id"] not in (0, 9, 21)]
    assert not differences(warehouse.both_readers("d.t"), expected)

    updated = update(spark, warehouse, {"v": "'changed'", "part": "'moved'"}, "t.id % 3 = 1")

    assert updated.error is None, updated.error
    new = {"v": "changed", "part": "moved"}
    expected = [{**row, **new} if row["id"] % 3 == 1 else row for row in expected]
    assert not differences(warehouse.both_readers("d.t"), expected)

    table.append(rows_of([50], "last"))
    table.expire()

    expected += from_arrow(rows_of([50], "last"))
    assert not differences(warehouse.both_readers("d.t"), expected)
    assert not list(warehouse.path.rglob("*.parquet"))
    live = {file.name for file in facts_from_java(warehouse.path, "d.t").files}
    assert {path.name for root in roots for path in root.rglob("*.parquet")} == live
    assert {path.stem for root in roots for path in root.rglob("*.index")} <= live
