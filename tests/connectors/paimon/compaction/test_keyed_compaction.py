"""Compactions of tables with a primary key: the same rows, in files of the highest level."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pypaimon.schema.data_types import AtomicType
from pypaimon.schema.schema_change import SchemaChange

from spark_jobs.connectors.paimon.compaction.keyed_plan import keyed_parts
from spark_jobs.connectors.paimon.compaction.options import CompactionOptions
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.errors import ErrorCode
from spark_jobs.spi.connector import Connector
from tests.connectors.paimon.compaction.keyed_tables import (
    FULL,
    KEY,
    MINOR,
    changelog,
    compact,
    file_names,
    levels,
    merged,
    native,
    new_table,
    records,
    row,
)
from tests.support import compaction_runs
from tests.support.direct_merges import merge_rows
from tests.support.paimon_tables import (
    NAME,
)


@pytest.mark.parametrize(
    "options",
    [
        {"merge-engine": "deduplicate"},
        {"merge-engine": "partial-update"},
        {"merge-engine": "aggregation", "fields.v.aggregate-function": "max"},
        {"sequence.field": "v"},
        {"bucket": "-1"},
        {"data-file.thin-mode": "true"},
        {"file.format": "orc"},
    ],
    ids=str,
)
def test_a_full_compaction_leaves_files_of_the_highest_level_alone(
    connector: Connector, warehouse: Path, options: dict[str, str]
) -> None:
    new_table(connector, options)
    records(connector, [row(1), row(2), row(1, p=1)], [row(2, "b"), row(3, None)], [row(2, None)])

    report = compact(connector, warehouse)

    assert levels(connector) == {5: 2}
    assert {Path(path).suffix for path, _ in native(connector).files.located_entries} == {
        ".parquet"
    }
    assert (report.partitions_compacted, report.files_before, report.files_after) == (2, 4, 2)
    assert (report.rows, report.changelog_files) == (4, 0)


def test_a_minor_compaction_takes_buckets_with_many_runs(
    connector: Connector, warehouse: Path
) -> None:
    new_table(connector)
    records(connector, *[[row(1, f"{n}"), *([row(1, p=1)] if n else [])] for n in range(5)])

    compact(connector, warehouse, MINOR)

    kept = {
        tuple(e.partition.values): e.file.level for _, e in native(connector).files.located_entries
    }
    assert kept == {(0,): 5, (1,): 0}
    assert levels(connector) == {5: 1, 0: 4}
    compact(connector, warehouse, CompactSpec(sorted_runs=4))
    assert levels(connector) == {5: 2}


def test_a_section_that_is_as_a_compaction_leaves_it_stays(
    connector: Connector, warehouse: Path
) -> None:
    new_table(connector)
    for numbers in (range(10), range(20, 30), range(40, 50)):
        merged(connector, [row(n) for n in numbers])
    before = file_names(connector)
    assert levels(connector) == {5: 3}
    records(connector, [row(5, "new")], [row(45, "new")])

    compact(connector, warehouse, CompactSpec(mode="full", small_file_share=0.0))

    assert levels(connector) == {5: 3}
    assert len(file_names(connector) & before) == 1


def test_neighbouring_small_files_are_put_together(connector: Connector, warehouse: Path) -> None:
    new_table(connector)
    for first in range(0, 60, 10):
        merged(connector, [row(n) for n in range(first, first + 5)])
    assert levels(connector) == {5: 6}

    compact(connector, warehouse, CompactSpec(min_files=7))
    assert levels(connector) == {5: 6}
    compact(connector, warehouse, CompactSpec(min_files=6))
    assert levels(connector) == {5: 1}


def test_new_files_have_the_target_size_and_do_not_overlap(
    connector: Connector, warehouse: Path
) -> None:
    new_table(connector)
    for number in range(3):
        batch = [row(n, f"{n * 7919 % 10007} {number}" * 20) for n in range(number, 30_000, 2)]
        records(connector, batch)

    compact(connector, warehouse, CompactSpec(mode="full", target_file_size="200 kb"))

    sizes = [entry.file.file_size for _, entry in native(connector).files.located_entries]
    assert len(sizes) > 1
    assert all(size >= 200 * 1024 for size in sorted(sizes)[1:])


def test_sequence_numbers_stay(connector: Connector, warehouse: Path) -> None:
    new_table(connector)
    records(connector, [row(1), row(2)], [row(2, "b"), row(3)])
    before = max(e.file.max_sequence_number for _, e in native(connector).files.located_entries)

    compact(connector, warehouse)

    ((path, entry),) = native(connector).files.located_entries
    numbers = pq.ParquetFile(path).read()["_SEQUENCE_NUMBER"].to_pylist()
    assert numbers == [0, 2, 3]
    assert (entry.file.min_sequence_number, entry.file.max_sequence_number) == (0, 3)
    assert before == 3


def test_a_bucket_of_which_no_row_is_left_is_empty(connector: Connector, warehouse: Path) -> None:
    new_table(connector)
    records(connector, [row(1)])
    merge_rows(connector, NAME, KEY, [row(1)], ["v"], lambda _: True)
    assert levels(connector) == {0: 2}

    compact(connector, warehouse)

    assert levels(connector) == {}


def test_files_with_older_columns_are_written_anew(connector: Connector, warehouse: Path) -> None:
    new_table(connector)
    merged(connector, [row(1), row(2)])
    before = file_names(connector)
    add = SchemaChange.add_column("w", AtomicType("INT"))
    native(connector).table.catalog_environment.catalog_loader.load().alter_table(
        str(NAME), [add], False
    )

    compact(connector, warehouse, MINOR)
    assert file_names(connector) == before
    compact(connector, warehouse)

    ((path, _),) = native(connector).files.located_entries
    assert pq.ParquetFile(path).read().column("w").to_pylist() == [None, None]


def test_a_file_that_is_damaged_leaves_its_partition_as_it_is(
    connector: Connector, warehouse: Path
) -> None:
    new_table(connector)
    records(connector, [row(1), row(1, p=1)], [row(2), row(2, p=1)])
    path, entry = native(connector).files.located_entries[0]
    Path(path).write_bytes(b"no parquet")

    result = compaction_runs.compact(connector, CatalogSpec("paimon", str(warehouse)), FULL)

    assert result.error is not None
    assert result.error.code == ErrorCode.DATA_FILE_UNREADABLE.name
    assert path in result.error.message
    left = {
        tuple(e.partition.values): e.file.level for _, e in native(connector).files.located_entries
    }
    damaged = tuple(entry.partition.values)
    assert left[damaged] == 0
    assert sorted(left.values()) == [0, 5]


@pytest.mark.parametrize("producer", ["none", "full-compaction"])
def test_a_bucket_that_has_had_more_levels_keeps_its_highest(
    connector: Connector, warehouse: Path, producer: str
) -> None:
    new_table(connector, {"changelog-producer": producer})
    records(connector, [row(1), row(2)])
    compact(connector, warehouse)
    set_option = SchemaChange.set_option("num-levels", "3")
    native(connector).table.catalog_environment.catalog_loader.load().alter_table(
        str(NAME), [set_option], False
    )
    records(connector, [row(2, "b")])

    compact(connector, warehouse)

    assert levels(connector) == {5: 1}
    if producer != "none":
        assert changelog(connector) == [("-U", 2, "a"), ("+U", 2, "b")]


def test_a_large_bucket_is_several_parts(connector: Connector) -> None:
    new_table(connector)
    for first in range(0, 50, 10):
        merged(connector, [row(n) for n in range(first, first + 5)])
    records(connector, *[[row(n, "new")] for n in (1, 2, 21, 41, 42)])
    found = native(connector)
    options = CompactionOptions.of(found, CompactSpec(mode="full", small_file_share=0.0))
    assert found.keyed is not None

    parts = list(keyed_parts(found, found.keyed, options, lambda _: True, part_bytes=1))

    assert [len(part.files) for part in parts] == [3, 2, 3]
    (whole,) = keyed_parts(found, found.keyed, options, lambda _: True)
    assert sorted(whole.files) == sorted(index for part in parts for index in part.files)


def test_files_go_where_new_ones_belong(connector: Connector, warehouse: Path) -> None:
    new_table(connector)
    merged(connector, [row(1)])
    outside = warehouse.parent / "outside"
    changes = {"data-file.external-paths": f"file:{outside}"}
    changes["data-file.external-paths.strategy"] = "round-robin"
    native(connector).table.catalog_environment.catalog_loader.load().alter_table(
        str(NAME), [SchemaChange.set_option(*each) for each in changes.items()], False
    )

    compact(connector, warehouse)

    ((path, _),) = native(connector).files.located_entries
    assert path.startswith(f"{outside}/")
