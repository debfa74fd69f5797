"""Looking keys up in the HASH index, choosing buckets for new ones, and extending the index."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pypaimon.schema.data_types import AtomicType, DataField
from pypaimon.write.row_key_extractor import RowKeyExtractor

from spark_jobs.connectors.paimon.format.buckets import key_hashes
from spark_jobs.connectors.paimon.format.hash_index import (
    DynamicBuckets,
    PartitionIndex,
    PostponedBuckets,
    hash_index_bytes,
    read_hashes,
    rows_by_partition,
)
from spark_jobs.connectors.paimon.format.manifest_entries import BucketKey
from spark_jobs.connectors.paimon.keyed.bucket_index import (
    BucketIndex,
    BucketIndexes,
    require_own_rows,
)
from spark_jobs.datafiles.row_id import FILE_FIELD
from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.spi import rows

LOCAL = pafs.LocalFileSystem()
KEY = (pa.field("id", pa.int32(), nullable=False),)


def keys(ids: Iterable[int], partitions: Iterable[str | None] | None = None) -> pa.RecordBatch:
    found = list(ids)
    return pa.record_batch(
        {
            "id": pa.array(found, pa.int32()),
            "p": pa.array(["a"] * len(found) if partitions is None else list(partitions)),
        }
    )


def hashes_of(ids: Iterable[int]) -> list[int]:
    return key_hashes(keys(ids), KEY).tolist()


def index_file(folder: Path, name: str, ids: Iterable[int]) -> str:
    path = folder / name
    path.write_bytes(hash_index_bytes(np.array(hashes_of(ids), np.int32)))
    return str(path)


def dynamic(partitions: dict[Any, PartitionIndex], first: tuple[int, ...] = (0,)) -> DynamicBuckets:
    return DynamicBuckets(LOCAL, ("p",), KEY, partitions, first)


def buckets_of(buckets: Any, batch: pa.RecordBatch) -> list[int]:
    (found,) = buckets(batch)
    assert found.type == pa.int32()
    return list(found.to_pylist())


def test_hashes_are_those_of_pypaimon():
    fields = [DataField(0, "id", AtomicType("INT", nullable=False))]
    ids = [0, 1, -1, 7, 2**31 - 1, -(2**31)]
    expected = [RowKeyExtractor._binary_row_hash_code((each,), fields) for each in ids]
    assert [each % 2**32 for each in hashes_of(ids)] == expected


def test_known_keys_are_found_and_new_ones_spread_over_open_buckets(tmp_path: Path):
    files = {
        3: index_file(tmp_path, "three", range(10)),
        5: index_file(tmp_path, "five", range(10, 20)),
    }
    buckets = dynamic({("a",): PartitionIndex(files, (5, 8))})
    assert buckets_of(buckets, keys(range(20))) == [3] * 10 + [5] * 10
    new = buckets_of(buckets, keys(range(20, 200)))
    assert set(new) == {5, 8}
    assert buckets_of(buckets, keys(reversed(range(20, 200)))) == new[::-1], "only the hash decides"


def test_each_partition_has_its_own_index(tmp_path: Path):
    known = {7: index_file(tmp_path, "seven", [1, 2])}
    buckets = dynamic({("a",): PartitionIndex(known, (7,))}, first=(0, 1))
    found = buckets_of(buckets, keys([1, 1, 2, 1], ["b", "a", "a", None]))
    assert found[1:3] == [7, 7]
    assert {found[0], found[3]} <= {0, 1}


@pytest.mark.parametrize("partitions", [[], ["a"], ["b", None, "b", "a", None, "a"]])
def test_rows_by_partition(partitions: list[str | None]):
    batch = keys(range(len(partitions)), partitions)
    found = {values: places.tolist() for values, places in rows_by_partition(batch, ("p",))}
    assert found == {
        (each,): [n for n, other in enumerate(partitions) if other == each] for each in partitions
    }


def test_without_partitions_all_rows_are_together():
    ((values, places),) = rows_by_partition(keys(range(3)), ())
    assert (values, places.tolist()) == ((), [0, 1, 2])


def test_postponed_buckets_have_the_count_of_their_partition():
    buckets = PostponedBuckets(("p",), KEY, {("a",): 1, ("b",): 50}, 2)
    found = buckets_of(buckets, keys([*range(40)] * 3, ["a"] * 40 + ["b"] * 40 + ["c"] * 40))
    assert set(found[:40]) == {0}
    assert max(found[40:80]) > 10
    assert set(found[80:]) == {0, 1}


def test_damaged_index_files_are_named(tmp_path: Path):
    path = tmp_path / "index-1"
    for content in (None, b"12345"):
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(CatalogError, match="index-1") as caught:
            read_hashes(LOCAL, str(path))
        assert caught.value.code == ErrorCode.METADATA_UNREADABLE


def changes(ids: list[int], operations: list[int] | None = None) -> pa.Table:
    kinds = pa.array(operations or [rows.INSERT] * len(ids), pa.int8())
    return pa.table({"id": pa.array(ids, pa.int32()), rows.OPERATION: kinds})


def indexes(
    folder: Path,
    partitions: dict[Any, PartitionIndex],
    *,
    replaces: bool = False,
    target: int = 1000,
    most: int = 1000,
) -> BucketIndexes:
    buckets = dynamic(partitions, first=(0, 1))
    return BucketIndexes(buckets, LOCAL, "index-", str(folder), replaces, target, most)


PLACE = BucketKey(("a",), 4)


@settings(max_examples=60, deadline=None)
@given(
    old=st.sets(st.integers(0, 60)),
    batches=st.lists(st.lists(st.integers(0, 60), unique=True)),
    replaces=st.booleans(),
)
def test_a_new_file_has_the_old_and_the_new_hashes(
    tmp_path_factory: pytest.TempPathFactory,
    old: set[int],
    batches: list[list[int]],
    replaces: bool,
):
    folder = tmp_path_factory.mktemp("index")
    known = PartitionIndex({4: index_file(folder, "old", sorted(old))}, (4,))
    index = BucketIndex(indexes(folder, {("a",): known}, replaces=replaces), PLACE)
    inserted = set()
    for batch in batches:
        assert index.take(changes(sorted(batch))) == len(batch)
        inserted |= set(batch)

    document = index.finish(lambda: str(folder / "new"))

    stays = set() if replaces else old
    if not inserted - stays:
        assert document is None
        assert not (folder / "new").exists()
        return
    assert document is not None
    stored = read_hashes(LOCAL, document["path"]).tolist()
    assert sorted(stored) == sorted(hashes_of(stays | inserted))
    assert (document["hashes"], document["size"]) == (len(stored), 4 * len(stored))
    assert (document["partition"], document["bucket"]) == (["a"], 4)


def test_updates_and_deletes_add_no_keys(tmp_path: Path):
    index = BucketIndex(indexes(tmp_path, {}), PLACE)
    index.take(changes([1, 2], [rows.UPDATE, rows.DELETE]))
    assert index.finish(lambda: "never") is None


def test_a_new_bucket_is_left_when_it_is_full(tmp_path: Path):
    index = BucketIndex(indexes(tmp_path, {}, target=3), PLACE)
    assert index.take(changes([1, 1, 2])) == 3
    assert index.take(changes([3, 3, 4, 5])) == 2
    assert index.next_place == BucketKey(("a",), 6), "bucket 5 belongs to another task"


def test_a_new_bucket_of_a_known_partition_is_followed_by_the_next(tmp_path: Path):
    known = PartitionIndex({3: index_file(tmp_path, "three", [9])}, (4,))
    index = BucketIndex(indexes(tmp_path, {("a",): known}, target=1), PLACE)
    assert index.take(changes([1, 2])) == 1
    assert index.next_place == BucketKey(("a",), 5)


@pytest.mark.parametrize("place", [BucketKey(("a",), 3), BucketKey(("b",), 9)])
def test_old_buckets_and_the_last_one_take_everything(tmp_path: Path, place: BucketKey):
    known = PartitionIndex({3: index_file(tmp_path, "three", [9])}, (3,))
    index = BucketIndex(indexes(tmp_path, {("a",): known}, target=1, most=10), place)
    assert index.take(changes([1, 2, 3])) == 3


def test_rows_of_another_bucket_mean_a_wrong_index():
    ids = pa.array([None, {FILE_FIELD: 3}, {FILE_FIELD: 4}], pa.struct([(FILE_FIELD, pa.int32())]))
    table = pa.table({rows.ROW_ID: ids})
    require_own_rows({3, 4}, PLACE, table)
    require_own_rows(set(), PLACE, table.slice(0, 1))
    require_own_rows(set(), PLACE, pa.table({rows.ROW_ID: pa.nulls(2)}))
    with pytest.raises(CatalogError, match="bucket 4") as caught:
        require_own_rows({3}, PLACE, table)
    assert caught.value.code == ErrorCode.METADATA_UNREADABLE
