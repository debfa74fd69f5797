"""Compactions of records whose changelog is owed, or that batch readers do not see yet."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from pypaimon.write.commit_message import CommitMessage

from spark_jobs.connectors.paimon.format.buckets import key_hashes, remainders
from spark_jobs.connectors.paimon.keyed.run_writer import SortedRunWriter
from spark_jobs.connectors.paimon.library.data_files import new_keyed_file
from spark_jobs.connectors.paimon.library.table_schema import arrow_schema
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.rolling_writer import NewFiles
from spark_jobs.spi.connector import Connector
from tests.connectors.paimon.compaction.keyed_tables import (
    COLUMNS,
    KEY,
    changelog,
    compact,
    levels,
    merged,
    native,
    new_table,
    records,
    row,
    seen,
)
from tests.support import compaction_runs
from tests.support.direct_merges import merge_rows
from tests.support.keyed_checker import problems_of
from tests.support.paimon_tables import (
    NAME,
    create,
    data_files,
    schema_of,
)

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


def test_records_that_come_into_a_bucket_meanwhile_make_postponed_ones_wait(
    connector: Connector, warehouse: Path
) -> None:
    """Otherwise, records of a key would have the same number."""
    new_table(connector, {"bucket": "-2"})
    postponed(connector, [row(1)])
    compact(connector, warehouse, CompactSpec(include_pending=True), shows=True)
    postponed(connector, [row(1, "postponed")])
    added: list[None] = []

    def meanwhile() -> None:
        if not added:
            added.append(bucket_record(connector, row(1, "meanwhile")))

    result = compaction_runs.compact(
        connector,
        CatalogSpec("paimon", str(warehouse)),
        CompactSpec(include_pending=True),
        before_publication=meanwhile,
    )

    assert result.error is None, result.error
    assert seen(connector) == [row(1, "postponed")]
    assert problems_of(native(connector).table, numbered=False) == []


def bucket_record(connector: Connector, record: dict[str, Any]) -> None:
    """A record of level 0 in bucket 0, as by a writer that chooses buckets."""
    found = native(connector)
    newest = max(entry.file.max_sequence_number for _, entry in found.files.located_entries)
    files = NewFiles(pafs.LocalFileSystem(), arrow_schema(found.table), 2**27, Compression())
    writer = SortedRunWriter(
        files, ("id",), False, lambda: f"{found.path}/p=0/bucket-0/data-{uuid.uuid4()}-0.parquet"
    )
    rows = pa.Table.from_pylist([record], schema=files.schema)
    writer.write(rows, pa.array([newest + 1]), pa.array([0], pa.int8()))
    (run,) = writer.finish()
    message = CommitMessage((0,), 0, [new_keyed_file(found.table, run, 0)], total_buckets=1)
    commit = found.table.new_stream_write_builder().new_commit()
    commit.commit([message], 77)
    commit.close()


def test_the_bucket_key_says_where_postponed_records_belong(
    connector: Connector, warehouse: Path
) -> None:
    options = {"bucket": "-2", "bucket-key": "v", "postpone.default-bucket-num": "4"}
    create(connector, COLUMNS, ["p"], options, primary_key=("p", "id", "v"))
    postponed(connector, [row(n, "same") for n in range(9)])

    compact(connector, warehouse, CompactSpec(include_pending=True), shows=True)

    ((_, entry),) = native(connector).files.located_entries
    key = [schema_of(connector.metadata.load_table(NAME)).field("v")]
    same = pa.table({"v": ["same"]})
    assert entry.bucket == remainders(key_hashes(same, key), 4)[0]
    merge_rows(connector, NAME, ("p", "id", "v"), [row(3, "same")], [], lambda _: True)
    assert len(seen(connector)) == 8
