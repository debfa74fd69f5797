"""What Airflow's side says there is to compact is what pypaimon finds in tables of every kind.

Levels above 0, which only compactions and rewrites make: tests/judge/test_compaction_facts.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pypaimon import CatalogFactory, Schema

from airflow_provider_merge.metadata.model import CompactionFacts
from airflow_provider_merge.metadata.paimon.table import PaimonTable
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.request import TableName
from spark_jobs.errors import JobError
from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from tests.fuzz.binary_mutations import hostile_avro
from tests.fuzz.mutations import damaged_bytes
from tests.support import paimon_tables

PENDING = CompactSpec(include_pending=True)


def facts(
    warehouse: Path, spec: CompactSpec | None = None, **wanted: Any
) -> dict[str, CompactionFacts]:
    table = PaimonTable.find(str(warehouse), paimon_tables.NAME, {})
    found = table.compaction_facts(spec or CompactSpec(), wanted)
    return {each.name: each for each in found}


def sizes_by_partition(connector: Connector) -> dict[tuple[Any, ...], list[int]]:
    """The bytes of each live file, as pypaimon plans them."""
    builder = connector.metadata.load_table(paimon_tables.NAME).native.table.new_read_builder()
    found: dict[tuple[Any, ...], list[int]] = {}
    for split in builder.new_scan().plan().splits():
        sizes = found.setdefault(tuple(split.partition.values), [])
        sizes += [file.file_size for file in split.files]
    return found


def test_small_files_of_an_append_table(connector: Connector, warehouse: Path) -> None:
    paimon_tables.create(connector, {"id": "BIGINT", "k": "STRING"}, ["k"])
    for number, count in enumerate((3, 2000, 5)):
        values = [{"id": i, "k": k} for i in range(count) for k in ("a", None)]
        paimon_tables.append(connector, values, f"append-{number}")
    paimon_tables.append(connector, [{"id": 1, "k": "b"}], "last")
    sizes = sizes_by_partition(connector)
    limit = min(max(sizes["a",]), max(sizes[None,]))

    found = facts(warehouse, CompactSpec(target_file_size=f"{limit} b", small_file_share=1.0))

    assert list(found) == ["k=NULL", "k=a", "k=b"]
    for (value,), of_files in sizes.items():
        one = found[f"k={'NULL' if value is None else value}"]
        small = [size for size in of_files if size < limit]
        assert one.values == {"k": value}
        assert (one.files, one.size) == (len(of_files), sum(of_files))
        assert (one.small_files, one.small_size) == (len(small), sum(small))
        assert one.joinable_files == len(small)
    assert {name: each.small_files for name, each in found.items()} == {
        "k=NULL": 2,
        "k=a": 2,
        "k=b": 1,
    }
    assert facts(warehouse, k="b") == {"k=b": facts(warehouse)["k=b"]}
    assert facts(warehouse, k=None) == {"k=NULL": facts(warehouse)["k=NULL"]}
    assert facts(warehouse)["k=a"].small_files == 3, "of 256 mb, all are small"
    assert facts(warehouse)["k=a"].sorted_runs == {}


@pytest.mark.parametrize(
    ("bucket", "joinable"), [("-1", 4), ("1", 2)], ids=["unordered", "ordered"]
)
def test_in_a_fixed_bucket_only_neighbours_are_joinable(
    connector: Connector, warehouse: Path, bucket: str, joinable: int
) -> None:
    options = {"bucket": bucket, **({"bucket-key": "id"} if bucket == "1" else {})}
    paimon_tables.create(connector, {"id": "BIGINT"}, (), options)
    for number, count in enumerate((3, 2000, 3, 2000, 3, 3)):
        values = [{"id": i} for i in range(count)]
        paimon_tables.append(connector, values, f"append-{number}")
    (sizes,) = sizes_by_partition(connector).values()
    spec = CompactSpec(target_file_size=f"{max(sizes)} b", small_file_share=1.0)

    (one,) = facts(warehouse, spec).values()

    assert (one.small_files, one.joinable_files) == (4, joinable)
    tight = CompactSpec(target_file_size=f"{2 * min(sizes) - 1} b", small_file_share=1.0)
    (one,) = facts(warehouse, tight).values()
    assert (one.small_files, one.joinable_files) == (4, 1)


def test_small_files_meet_in_their_bucket_only(connector: Connector, warehouse: Path) -> None:
    options = {"bucket": "3", "bucket-key": "id"}
    paimon_tables.create(connector, {"id": "BIGINT"}, (), options)
    for number in range(2):
        values = [{"id": i} for i in range(50)]
        paimon_tables.append(connector, values, f"append-{number}")

    (one,) = facts(warehouse).values()

    assert one.values == {}
    assert (one.small_files, one.joinable_files) == (6, 2)


@pytest.mark.parametrize("keys", [[], ["k"]], ids=["unpartitioned", "partitioned"])
def test_the_share_of_marked_rows(connector: Connector, warehouse: Path, keys: list[str]) -> None:
    marking = {"deletion-vectors.enabled": "true"}
    paimon_tables.create(connector, {"id": "BIGINT", "k": "STRING"}, keys, marking)
    for number in range(2):
        values = [{"id": i, "k": "ab"[number]} for i in range(50)]
        paimon_tables.append(connector, values, f"append-{number}")
    handle = connector.metadata.load_table(paimon_tables.NAME)
    gone = [{"file": 0, "position": position} for position in range(10)]
    paimon_tables.merge(connector, handle, paimon_tables.change_rows(handle, rows.DELETE, gone))

    found = facts(warehouse)

    shares = [each.marked_share for each in found.values()]
    assert sorted(shares) == ([0.0, 0.2] if keys else [0.1])
    assert sum(each.rows for each in found.values()) == 100
    assert sum(each.marked_rows or 0 for each in found.values()) == 10


def keyed_table(
    warehouse: Path, options: Mapping[str, str], partition_keys: Sequence[str] = ()
) -> Any:
    schema = pa.schema([("id", pa.int64()), ("k", pa.string())])
    catalog = CatalogFactory.create({"warehouse": str(warehouse)})
    catalog.create_database("shop", True)
    native = Schema.from_pyarrow_schema(
        schema, list(partition_keys), [*partition_keys, "id"], dict(options)
    )
    catalog.create_table(str(paimon_tables.NAME), native, False)
    return catalog.get_table(str(paimon_tables.NAME))


def upsert(table: Any, ids: Iterable[int], k: str | None = "a") -> None:
    builder = table.new_batch_write_builder()
    writer, commit = builder.new_write(), builder.new_commit()
    writer.write_arrow(pa.table({"id": pa.array(ids, pa.int64()), "k": [k] * len(list(ids))}))
    commit.commit(writer.prepare_commit())
    writer.close()
    commit.close()


def test_sorted_runs_of_each_bucket(warehouse: Path) -> None:
    table = keyed_table(warehouse, {"bucket": "2"}, ["k"])
    upsert(table, range(20))
    upsert(table, range(20))
    upsert(table, [1], "b")
    upsert(table, [1])

    found = facts(warehouse)

    runs = found["k=a"].sorted_runs
    assert sorted(runs.values()) == [2, 3]
    assert (found["k=a"].most_sorted_runs, found["k=a"].level_0_files) == (3, 5)
    assert list(found["k=b"].sorted_runs.values()) == [1]
    assert {each.pending_files for each in found.values()} == {0}
    assert found["k=a"].rows == 41


@pytest.mark.parametrize(
    "options",
    [{"deletion-vectors.enabled": "true"}, {"merge-engine": "first-row"}],
    ids=["vectors", "first-row"],
)
def test_files_that_readers_do_not_see_yet_are_pending(
    warehouse: Path, options: dict[str, str]
) -> None:
    table = keyed_table(warehouse, {"bucket": "1", **options})
    for _ in range(3):
        upsert(table, range(5))

    (seen,), (asked,) = facts(warehouse).values(), facts(warehouse, PENDING).values()

    assert (seen.files, seen.pending_files) == (asked.files, asked.pending_files) == (3, 3)
    assert (seen.small_files, seen.most_sorted_runs, seen.level_0_files, seen.rows) == (0, 0, 0, 0)
    assert seen.marked_share == 0.0
    assert (asked.small_files, asked.most_sorted_runs, asked.level_0_files) == (3, 3, 3)
    assert (asked.joinable_files, asked.rows) == (0, 15)


def test_postponed_files_are_pending(warehouse: Path) -> None:
    upsert(keyed_table(warehouse, {"bucket": "-2"}), range(5))

    (seen,), (asked,) = facts(warehouse).values(), facts(warehouse, PENDING).values()

    assert (seen.pending_files, seen.small_files, seen.sorted_runs) == (1, 0, {})
    assert (asked.pending_files, asked.small_files, asked.sorted_runs) == (1, 1, {-2: 1})


def test_a_table_without_files(connector: Connector, warehouse: Path) -> None:
    paimon_tables.create(connector, {"id": "BIGINT"})
    assert facts(warehouse) == {}


def test_a_branch_has_its_own_files(connector: Connector, warehouse: Path) -> None:
    handle = paimon_tables.create(connector, {"id": "BIGINT"})
    paimon_tables.append(connector, [{"id": 1}])
    native = handle.native.table
    native.create_tag("t", 1)
    native.branch_manager().create_branch("b", "t")
    paimon_tables.append(connector, [{"id": 2}], "second")
    branch = PaimonTable.find(str(warehouse), TableName("shop", "orders$branch_b"), {})

    assert [each.files for each in branch.compaction_facts(CompactSpec())] == [1]
    assert [each.files for each in facts(warehouse).values()] == [2]


@pytest.mark.slow
def test_damaged_and_hostile_manifests(warehouse: Path) -> None:
    table = keyed_table(warehouse, {"bucket": "2"}, ["k"])
    for k in ("a", "b"):
        upsert(table, range(20), k)
    files = sorted(warehouse.rglob("manifest/*"))
    refused = 0
    for seed in range(300):
        random = Random(seed)
        path = random.choice(files)
        content = path.read_bytes()
        path.write_bytes(random.choice((damaged_bytes, hostile_avro))(content, random))
        try:
            facts(warehouse)
        except JobError:
            refused += 1
        except Exception as other:
            raise AssertionError(f"seed {seed}, {path}") from other
        path.write_bytes(content)
    assert 25 < refused < 275
