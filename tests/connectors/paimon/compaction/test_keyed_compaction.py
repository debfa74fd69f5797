"""Compactions of tables with a primary key: the same rows, in files of the highest level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pypaimon.manifest.manifest_file_manager import ManifestFileManager
from pypaimon.manifest.manifest_list_manager import ManifestListManager
from pypaimon.schema.data_types import AtomicType
from pypaimon.schema.schema_change import SchemaChange

from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.contract.compaction import CompactionReport, CompactSpec
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.errors import ErrorCode
from spark_jobs.spi.connector import Connector
from tests.judge.keyed_checker import problems_of
from tests.support import compaction_runs
from tests.support.direct_merges import live_rows, merge_rows
from tests.support.paimon_tables import (
    NAME,
    append_with_pypaimon,
    create,
    data_files,
    read,
    schema_of,
    snapshot_ids,
)

COLUMNS = {"p": "int", "id": "int", "v": "string"}
KEY = ("p", "id")
FULL = CompactSpec(mode="full")
MINOR = CompactSpec()
ONE_BUCKET = {"bucket": "1"}
KINDS = ("+I", "-U", "+U", "-D")


def row(number: int, text: str | None = "a", p: int = 0) -> dict[str, Any]:
    return {"p": p, "id": number, "v": text}


def new_table(connector: Connector, options: Mapping[str, str] | None = None) -> None:
    create(connector, COLUMNS, ["p"], {**ONE_BUCKET, **(options or {})}, primary_key=KEY)


def native(connector: Connector) -> PinnedTable:
    return pinned_table(connector.metadata.load_table(NAME))


def records(connector: Connector, *batches: Sequence[dict[str, Any]]) -> None:
    """Each batch becomes a file of level 0 in each bucket."""
    for batch in batches:
        append_with_pypaimon(connector.metadata.load_table(NAME), batch)


def merged(connector: Connector, rows: Sequence[dict[str, Any]], *, deletes: bool = False) -> None:
    merge_rows(connector, NAME, KEY, rows, ["v"], lambda _: deletes, may_exist=True)


def seen(connector: Connector) -> list[dict[str, Any]]:
    """The rows that readers see, by this project's reader."""
    found = live_rows(connector, connector.metadata.load_table(NAME))
    columns = connector.metadata.load_table(NAME).column_names
    return sorted([{name: each[name] for name in columns} for each in found], key=repr)


def levels(connector: Connector) -> dict[int, int]:
    """The number of files on each level."""
    return dict(Counter(entry.file.level for _, entry in native(connector).located_entries))


def file_names(connector: Connector) -> set[str]:
    return {entry.file.file_name for _, entry in native(connector).located_entries}


def compact(
    connector: Connector, warehouse: Path, spec: CompactSpec = FULL, *, shows: bool = False
) -> CompactionReport:
    """Compact, and check what must hold of every compaction; ``shows``: rows may appear."""
    before, snapshots = seen(connector), len(snapshot_ids(connector))
    result = compaction_runs.compact(connector, CatalogSpec("paimon", str(warehouse)), spec)
    assert result.error is None, result.error
    assert shows or seen(connector) == before
    assert read(connector) == seen(connector)
    found = native(connector)
    # pypaimon's writers, which set no field ids, have written some of the files.
    assert problems_of(found.table, numbered=False) == []
    report = result.compaction
    assert report is not None
    assert len(snapshot_ids(connector)) == snapshots + len(report.snapshots)
    if report.snapshots:
        assert (found.snapshot.commit_kind, found.snapshot.commit_identifier) == ("COMPACT", 2)
        again = compaction_runs.compact(connector, CatalogSpec("paimon", str(warehouse)), spec)
        assert again.error is None
        assert again.compaction is not None
        assert again.compaction.snapshots == ()
    return report


def changelog(connector: Connector) -> list[tuple[str, int, str | None]]:
    """The records in the changelog of the latest snapshot, in order: kind, id and v."""
    found = native(connector)
    manifests = ManifestListManager(found.table).read_changelog(found.snapshot)
    entries = ManifestFileManager(found.table).read_entries_parallel(manifests)
    rows = [
        each
        for entry in entries
        for each in pq.ParquetFile(
            Path(found.path) / f"p={entry.partition.values[0]}/bucket-0/{entry.file.file_name}"
        )
        .read()
        .to_pylist()
    ]
    return [(KINDS[each["_VALUE_KIND"]], each["id"], each["v"]) for each in rows]


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
    assert {Path(path).suffix for path, _ in native(connector).located_entries} == {".parquet"}
    assert (report.partitions_compacted, report.files_before, report.files_after) == (2, 4, 2)
    assert (report.rows, report.changelog_files) == (4, 0)


def test_a_minor_compaction_takes_buckets_with_many_runs(
    connector: Connector, warehouse: Path
) -> None:
    new_table(connector)
    records(connector, *[[row(1, f"{n}"), *([row(1, p=1)] if n else [])] for n in range(5)])

    compact(connector, warehouse, MINOR)

    kept = {tuple(e.partition.values): e.file.level for _, e in native(connector).located_entries}
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

    sizes = [entry.file.file_size for _, entry in native(connector).located_entries]
    assert len(sizes) > 1
    assert all(size >= 200 * 1024 for size in sorted(sizes)[1:])


def test_sequence_numbers_stay(connector: Connector, warehouse: Path) -> None:
    new_table(connector)
    records(connector, [row(1), row(2)], [row(2, "b"), row(3)])
    before = max(e.file.max_sequence_number for _, e in native(connector).located_entries)

    compact(connector, warehouse)

    ((path, entry),) = native(connector).located_entries
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

    ((path, _),) = native(connector).located_entries
    assert pq.ParquetFile(path).read().column("w").to_pylist() == [None, None]


def test_a_file_that_is_damaged_leaves_its_partition_as_it_is(
    connector: Connector, warehouse: Path
) -> None:
    new_table(connector)
    records(connector, [row(1), row(1, p=1)], [row(2), row(2, p=1)])
    path, entry = native(connector).located_entries[0]
    Path(path).write_bytes(b"no parquet")

    result = compaction_runs.compact(connector, CatalogSpec("paimon", str(warehouse)), FULL)

    assert result.error is not None
    assert result.error.code == ErrorCode.DATA_FILE_UNREADABLE.name
    assert path in result.error.message
    left = {tuple(e.partition.values): e.file.level for _, e in native(connector).located_entries}
    damaged = tuple(entry.partition.values)
    assert left[damaged] == 0
    assert sorted(left.values()) == [0, 5]


HIDING = [
    {"deletion-vectors.enabled": "true"},
    {"merge-engine": "first-row"},
    {"deletion-vectors.enabled": "true", "changelog-producer": "lookup"},
    {"merge-engine": "first-row", "changelog-producer": "lookup"},
]


@pytest.mark.parametrize("options", HIDING, ids=str)
def test_records_that_are_not_seen_stay_so_unless_they_are_asked_for(
    connector: Connector, warehouse: Path, options: dict[str, str]
) -> None:
    new_table(connector, options)
    merged(connector, [row(1), row(2)])
    merged(connector, [row(8), row(9)])
    records(connector, [row(2, "new"), row(3, "new")])
    assert levels(connector) == {5: 2, 0: 1}

    compact(connector, warehouse)
    assert levels(connector) == {5: 1, 0: 1}

    compact(connector, warehouse, CompactSpec(include_pending=True), shows=True)
    assert levels(connector) == {5: 1}
    second = "a" if "merge-engine" in options else "new"
    assert seen(connector) == [row(1), row(2, second), row(3, "new"), row(8), row(9)]
    if "changelog-producer" in options:
        update = [] if second == "a" else [("-U", 2, "a"), ("+U", 2, "new")]
        assert changelog(connector) == [*update, ("+I", 3, "new")]


def test_the_changelog_that_lookup_owes_is_written(connector: Connector, warehouse: Path) -> None:
    new_table(connector, {"changelog-producer": "lookup"})
    merged(connector, [row(1), row(2), row(3)])
    records(connector, [row(2, "b"), row(4)], [row(4, "c"), row(3)])
    merge_rows(connector, NAME, KEY, [row(1)], ["v"], lambda _: True)

    report = compact(connector, warehouse)

    assert report.changelog_files == 1
    same = [("-U", 3, "a"), ("+U", 3, "a")]
    changed = [("-U", 2, "a"), ("+U", 2, "b"), *same, ("+I", 4, "c")]
    assert changelog(connector) == [("-D", 1, "a"), *changed]


def test_rows_that_stay_the_same_are_left_out_of_the_changelog_if_asked(
    connector: Connector, warehouse: Path
) -> None:
    options = {"changelog-producer.row-deduplicate": "true"}
    new_table(connector, {"changelog-producer": "full-compaction", **options})
    records(connector, [row(1), row(2)])
    compact(connector, warehouse)
    assert changelog(connector) == [("+I", 1, "a"), ("+I", 2, "a")]
    records(connector, [row(1), row(2, "b")])

    compact(connector, warehouse)

    assert changelog(connector) == [("-U", 2, "a"), ("+U", 2, "b")]


@pytest.mark.parametrize("producer", ["none", "input"])
def test_no_changelog_is_written_where_none_is_owed(
    connector: Connector, warehouse: Path, producer: str
) -> None:
    new_table(connector, {"changelog-producer": producer})
    records(connector, [row(1), row(2)], [row(2, "b")])

    report = compact(connector, warehouse)

    assert report.changelog_files == 0
    assert native(connector).snapshot.changelog_manifest_list is None


def postponed(connector: Connector, *batches: Sequence[dict[str, Any]]) -> None:
    """Each batch becomes a file that waits for its bucket."""
    table = connector.metadata.load_table(NAME)
    for batch in batches:
        builder = table.native.table.new_stream_write_builder()
        write, commit = builder.new_write(), builder.new_commit()
        write.write_arrow(pa.Table.from_pylist(list(batch), schema=schema_of(table)))
        commit.commit(write.prepare_commit(1), 1)
        write.close()
        commit.close()


def test_postponed_records_go_into_their_buckets_in_the_order_of_writing(
    connector: Connector, warehouse: Path
) -> None:
    new_table(connector, {"bucket": "-2", "postpone.default-bucket-num": "3"})
    postponed(connector, [row(n) for n in range(20)])
    assert seen(connector) == []

    compact(connector, warehouse)
    assert seen(connector) == []
    compact(connector, warehouse, CompactSpec(include_pending=True), shows=True)
    assert seen(connector) == sorted((row(n) for n in range(20)), key=repr)

    postponed(connector, [row(3, "b"), row(4, "b"), row(50)], [row(4, "c"), row(3, None)])
    compact(connector, warehouse, CompactSpec(include_pending=True), shows=True)
    changes = {3: None, 4: "c", 50: "a"}
    rows = [row(n, changes.get(n, "a")) for n in (*range(20), 50)]
    assert seen(connector) == sorted(rows, key=repr)
    assert set(levels(connector)) == {5}
    assert len(data_files(warehouse)) >= 3
