"""Every cell of the matrix on docs/primary-key.md: where changes go, and what all readers see.

``make test-all`` runs all cells, ``make test`` a part of them (``MERGE_TESTS_TURN``).
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from spark_jobs.contract.statements import Assignment, InsertAllAction, MergeCase, UpdateAction
from tests.judge.keyed_tables import commit_runs, entries_of, write_run
from tests.judge.merging import delete, insert, merge, overwrite, truncate, update
from tests.judge.storing import APPEND, BEGIN, END, STATEMENTS, STORAGES, Storage, matrix
from tests.support.judged_values import differences, from_arrow
from tests.support.keyed_checker import problems_of
from tests.support.turns import has_turn

PAGE = Path(__file__).resolve().parents[2] / "docs" / "primary-key.md"
_PARTS = 24
_HIGHEST_LEVEL = 5
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        pa.field("v", pa.int32()),
        pa.field("seq", pa.int32()),
    ]
)
BEFORE = [{"id": 1, "v": 10, "seq": 1}, {"id": 2, "v": 20, "seq": 1}, {"id": 4, "v": 40, "seq": 1}]
SOURCE = [{"id": 2, "v": 21, "seq": 2}, {"id": 3, "v": 31, "seq": 2}]
CHANGED = [*BEFORE[:1], *SOURCE, *BEFORE[2:]]
AFTER = {
    "merge": CHANGED,
    "merge of any key": CHANGED,
    "insert": CHANGED,
    "update": [BEFORE[0], {"id": 2, "v": None, "seq": 1}, BEFORE[2]],
    "delete": [BEFORE[0], BEFORE[2]],
    "overwrite": SOURCE,
    "truncate": [],
}


def _cases():
    for number, storage in enumerate(STORAGES):
        statements = STATEMENTS[:1] if storage.refusal else STATEMENTS
        for index, statement in enumerate(statements):
            if has_turn(number + index, _PARTS):
                name = f"{storage.engine}-{storage.feature}-{storage.buckets}-{statement}"
                yield pytest.param(storage, statement, id=name.replace(" ", "_").replace("`", ""))


@pytest.mark.parametrize(("storage", "statement"), list(_cases()))
def test_cell(spark, warehouse, storage, statement):
    warehouse.create("d.t", SCHEMA, [], ["id"], storage.options)
    if storage.refusal:
        result = run(spark, warehouse, statement)
        assert result.error.code == "NOT_SUPPORTED"
        assert storage.refusal in result.error.message
        return
    before = fill(spark, warehouse, storage)

    result = run(spark, warehouse, statement)

    assert result.error is None, result.error
    assert not differences(warehouse.both_readers("d.t"), after(storage, statement))
    assert not problems_of(warehouse.table("d.t"))
    entries = {entry.file.file_name: entry.file.level for entry in files(warehouse)}
    new = {level for name, level in entries.items() if name not in before}
    if storage.stored(statement) == APPEND:
        assert before <= set(entries), "an append removes nothing"
        assert new == {0}
    else:
        assert not before <= set(entries), "what was changed has been rewritten"
        assert new <= {_HIGHEST_LEVEL}


def after(storage: Storage, statement: str) -> list[dict]:
    """``first-row`` keeps the stored row, whatever is inserted."""
    if storage.engine == "first-row" and statement == "insert":
        return [*BEFORE[:2], SOURCE[1], BEFORE[2]]
    return AFTER[statement]


def fill(spark, warehouse, storage: Storage) -> set[str]:
    """Rows in the highest level, which all readers see; returns the names of files."""
    table = warehouse.table("d.t")
    if storage.buckets != "fixed":
        result = overwrite(spark, warehouse, pa.Table.from_pylist(BEFORE, SCHEMA), "table")
        assert result.error is None, result.error
        return {entry.file.file_name for entry in files(warehouse)}
    insert_rows = from_arrow(pa.Table.from_pylist(BEFORE, SCHEMA))
    by_bucket: dict[int, list] = {}
    for row in insert_rows:
        by_bucket.setdefault(bucket_of(table, row["id"]), []).append(("+I", row))
    for bucket, records in by_bucket.items():
        commit_runs(table, write_run(table, records, bucket=bucket), _HIGHEST_LEVEL, bucket=bucket)
    return {entry.file.file_name for entry in files(warehouse)}


def bucket_of(table, key: int) -> int:
    from pypaimon.write.row_key_extractor import FixedBucketRowKeyExtractor

    batch = pa.RecordBatch.from_pylist([{"id": key, "v": 0, "seq": 0}], SCHEMA)
    extractor = FixedBucketRowKeyExtractor(table.table_schema)
    return extractor.extract_partition_bucket_batch(batch)[1][0]


def files(warehouse):
    return entries_of(warehouse.table("d.t"))


def run(spark, warehouse, statement):
    source = pa.Table.from_pylist(SOURCE, SCHEMA)
    assigned = tuple(Assignment(name, f"s.{name}") for name in ("v", "seq"))
    cases = [
        MergeCase("matched", UpdateAction(assigned)),
        MergeCase("not_matched", InsertAllAction()),
    ]
    match statement:
        case "merge":
            return merge(spark, warehouse, source, cases)
        case "merge of any key":
            return merge(spark, warehouse, source, cases, on="t.id + 0 = s.id")
        case "update":
            return update(spark, warehouse, {"v": "NULL"}, "id = 2")
        case "delete":
            return delete(spark, warehouse, "id = 2")
        case "insert":
            return insert(spark, warehouse, source)
        case "overwrite":
            return overwrite(spark, warehouse, source, "table")
        case _:
            return truncate(spark, warehouse, {})


def test_the_page_has_the_matrix():
    found = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    assert found.strip() == matrix()
