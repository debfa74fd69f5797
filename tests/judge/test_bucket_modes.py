"""Dynamic and postponed buckets, as Java and pypaimon see them."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from pypaimon.manifest.index_manifest_file import IndexManifestFile

from spark_jobs.contract.statements import InsertAllAction, MergeCase, UpdateAllAction
from tests.judge.keyed_tables import entries_of
from tests.judge.merging import delete, insert, merge, overwrite, truncate, update
from tests.judge.writer import JavaTable
from tests.support.judged_values import differences, from_arrow
from tests.support.keyed_checker import problems_of

KINDS = {"id": "INT NOT NULL", "v": "STRING", "p": "INT NOT NULL"}
SCHEMA = pa.schema([("id", pa.int32()), ("v", pa.string()), ("p", pa.int32())])
UPSERT = [MergeCase("matched", UpdateAllAction()), MergeCase("not_matched", InsertAllAction())]
ON = "t.id = s.id AND t.p = s.p"


def table(warehouse, **options):
    options = {name.replace("_", "-"): value for name, value in options.items()}
    return JavaTable.of_types(
        warehouse.path, "d.t", KINDS, ["p"], {"bucket": "-1", **options}, ["p", "id"]
    )


def rows(numbers, text="new", p=0):
    return pa.Table.from_pylist([{"id": n, "v": text, "p": p} for n in numbers], SCHEMA)


def buckets(warehouse, p=0):
    """Records by bucket of a partition."""
    counts = Counter()
    for entry in entries_of(warehouse.table("d.t")):
        if entry.partition.values == [p]:
            counts[entry.bucket] += entry.file.row_count
    return dict(counts)


def indexes(warehouse):
    """The number of hashes by partition and bucket."""
    found = warehouse.table("d.t")
    snapshot = found.snapshot_manager().get_latest_snapshot()
    if snapshot.index_manifest is None:
        return {}
    return {
        (entry.partition.values[0], entry.bucket): entry.index_file.row_count
        for entry in IndexManifestFile(found).read(snapshot.index_manifest)
    }


def has(warehouse, expected):
    assert not differences(warehouse.both_readers("d.t"), from_arrow(expected))
    assert not problems_of(warehouse.table("d.t"))


def ended_well(result):
    assert result.error is None, result.error


TARGET = {"dynamic-bucket.target-row-num": "10"}


def test_a_first_load_fills_one_bucket_after_the_other(spark, warehouse):
    table(warehouse, **TARGET)
    ended_well(insert(spark, warehouse, rows(range(35))))
    assert buckets(warehouse) == {0: 10, 1: 10, 2: 10, 3: 5}
    assert indexes(warehouse) == {(0, number): n for number, n in buckets(warehouse).items()}
    has(warehouse, rows(range(35)))


def test_a_first_load_may_begin_with_several_buckets(spark, warehouse):
    table(warehouse, **TARGET, **{"dynamic-bucket.initial-buckets": "3"})
    ended_well(insert(spark, warehouse, rows(range(60))))
    assert max(buckets(warehouse).values()) == 10
    assert len(buckets(warehouse)) >= 6
    has(warehouse, rows(range(60)))


def test_there_are_never_more_buckets_than_the_option_says(spark, warehouse):
    table(warehouse, **TARGET, **{"dynamic-bucket.max-buckets": "2"})
    ended_well(insert(spark, warehouse, rows(range(50))))
    ended_well(insert(spark, warehouse, rows(range(50, 60))))
    assert set(buckets(warehouse)) == {0, 1}
    has(warehouse, rows(range(60)))


def test_new_keys_go_where_there_is_room_and_old_ones_stay(spark, warehouse):
    java = table(warehouse, **TARGET)
    java.append_records([("+I", row) for row in from_arrow(rows(range(15), "old"))])
    assert buckets(warehouse) == {0: 10, 1: 5}
    ended_well(merge(spark, warehouse, rows(range(13, 18)), UPSERT, on=ON))
    assert indexes(warehouse) == {(0, 0): 10, (0, 1): 8}
    ended_well(merge(spark, warehouse, rows([20, 21, 22]), UPSERT, on=ON))
    ended_well(merge(spark, warehouse, rows([23, 24]), UPSERT, on=ON))
    assert indexes(warehouse) == {(0, 0): 10, (0, 1): 11, (0, 2): 2}
    java.append_records([("+I", row) for row in from_arrow(rows([0, 16, 30], "Java"))])
    java.compact(full=True)
    new = [n for n in (*range(13, 18), *range(20, 25)) if n != 16]
    tables = [rows(range(1, 13), "old"), rows(new), rows([0, 16, 30], "Java")]
    has(warehouse, pa.concat_tables(tables))


def test_a_deleted_key_keeps_its_bucket(spark, warehouse):
    table(warehouse, **TARGET)
    ended_well(insert(spark, warehouse, rows(range(15))))
    before = indexes(warehouse)
    ended_well(delete(spark, warehouse, "id < 12"))
    assert indexes(warehouse) == before
    ended_well(insert(spark, warehouse, rows(range(5), "again")))
    assert indexes(warehouse) == before
    has(warehouse, pa.concat_tables([rows(range(5), "again"), rows(range(12, 15))]))


def test_what_replaces_a_partition_replaces_its_index(spark, warehouse):
    table(warehouse, **TARGET)
    ended_well(insert(spark, warehouse, rows(range(25))))
    ended_well(insert(spark, warehouse, rows(range(25), p=1)))
    ended_well(overwrite(spark, warehouse, rows([1, 2, 30]), "dynamic"))
    assert sum(n for (p, _), n in indexes(warehouse).items() if p == 0) == 3
    has(warehouse, pa.concat_tables([rows([1, 2, 30]), rows(range(25), p=1)]))
    ended_well(truncate(spark, warehouse, {"p": "1"}))
    assert {p for p, _ in indexes(warehouse)} == {0}
    ended_well(truncate(spark, warehouse, {}))
    assert indexes(warehouse) == {}
    ended_well(insert(spark, warehouse, rows([7])))
    has(warehouse, rows([7]))


def test_an_index_file_that_is_gone_is_named(spark, warehouse):
    table(warehouse)
    ended_well(insert(spark, warehouse, rows(range(5))))
    (index,) = warehouse.path.rglob("index/index-*")
    index.unlink()
    result = update(spark, warehouse, {"v": "'x'"}, "id = 1")
    assert result.error.code == "METADATA_UNREADABLE"
    assert index.name in result.error.message


def test_a_key_in_another_bucket_than_the_index_says_is_an_error(spark, warehouse):
    table(warehouse, **TARGET)
    ended_well(insert(spark, warehouse, rows(range(20))))
    contents = {path: path.read_bytes() for path in warehouse.path.rglob("index/index-*")}
    for path, other in zip(contents, reversed(contents), strict=True):
        path.write_bytes(contents[other])
    result = update(spark, warehouse, {"v": "'x'"}, "id = 1")
    assert result.error.code == "METADATA_UNREADABLE"
    assert "HASH index" in result.error.message


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update"])
def test_partitions_have_their_own_number_of_buckets(spark, warehouse, engine):
    options = {"bucket": "-2", "postpone.default-bucket-num": "3", "merge-engine": engine}
    java = table(warehouse, **options)
    ended_well(insert(spark, warehouse, rows(range(20))))
    java.alter(("option", ("postpone.default-bucket-num",), "5"))
    ended_well(merge(spark, warehouse, rows(range(15, 40)), UPSERT, on=ON))
    ended_well(merge(spark, warehouse, rows(range(40), p=1), UPSERT, on=ON))
    totals = {
        (entry.partition.values[0], entry.total_buckets)
        for entry in entries_of(warehouse.table("d.t"))
    }
    assert totals == {(0, 3), (1, 5)}
    assert set(buckets(warehouse)) == {0, 1, 2}
    assert set(buckets(warehouse, p=1)) == {0, 1, 2, 3, 4}
    has(warehouse, pa.concat_tables([rows(range(40)), rows(range(40), p=1)]))


def test_postponed_records_are_refused_where_they_belong(spark, warehouse):
    java = table(warehouse, bucket="-2")
    ended_well(insert(spark, warehouse, pa.concat_tables([rows([1, 2]), rows([1, 2], p=1)])))
    java.append_records([("+I", row) for row in from_arrow(rows([2, 3], "later"))])
    for result in (
        update(spark, warehouse, {"v": "'x'"}, "id = 1 AND p = 0"),
        insert(spark, warehouse, rows([9])),
        delete(spark, warehouse, "p = 0 AND id = 1"),
    ):
        assert result.error.code == "NOT_SUPPORTED"
        assert "postponed" in result.error.message
    ended_well(update(spark, warehouse, {"v": "'x'"}, "id = 1 AND p = 1"))
    ended_well(overwrite(spark, warehouse, rows([4]), "dynamic"))
    has(warehouse, pa.concat_tables([rows([4]), rows([1], "x", 1), rows([2], p=1)]))
