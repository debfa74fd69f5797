"""Publishing compactions beside others: who is in the way, and what the snapshot says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.connectors.paimon.commit.publish import SnapshotFiles
from spark_jobs.connectors.paimon.compaction.compaction import PaimonCompaction
from spark_jobs.connectors.paimon.library import manifest_files
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.compaction_record import GroupRecord, PartitionRecord
from spark_jobs.contract.partition_names import partition_key
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.spi import rows
from spark_jobs.spi.compaction import (
    GroupCommit,
    PublishedParts,
)
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import TableHandle
from spark_jobs.storage.hard_link import HardLinkFiles
from tests.connectors.paimon.compaction.publishing import (
    VECTORS,
    all_of,
    compacted,
    compaction_of,
    document,
    file_names,
    is_clean,
    noted,
    planned,
    publish,
    small_files,
)
from tests.support.paimon_tables import (
    NAME,
    append,
    append_with_pypaimon,
    change_rows,
    create,
    merge,
    read,
    snapshot_ids,
)


def test_a_snapshot_of_the_kind_compact(connector: Connector, warehouse: Path) -> None:
    table = small_files(connector)
    before = read(connector)

    group = all_of(connector, table)

    assert group.snapshot is not None
    assert (group.snapshot.snapshot_id, group.lost) == (4, frozenset())
    found = document(warehouse, 4)
    assert found["commitKind"] == "COMPACT"
    assert (found["commitUser"], found["commitIdentifier"]) == ("compaction", 2)
    assert (found["totalRecordCount"], found["deltaRecordCount"]) == (6, 0)
    assert found["properties"]["done"] == '["[\\"0\\"]", "[\\"1\\"]"]'
    latest = connector.metadata.load_table(NAME).native
    entries = manifest_files.changed_entries(latest.table, latest.snapshot)
    assert [(e.kind, e.file.file_source) for e in entries].count((0, 1)) == 2
    assert sum(e.kind for e in entries) == 6
    assert {each.files_before for each in group.done.partitions.values()} == {3}
    assert read(connector) == before
    assert is_clean(warehouse)


def test_watermark_and_statistics_stay(connector: Connector, warehouse: Path) -> None:
    table = small_files(connector)
    path = warehouse / "shop.db/orders/snapshot/snapshot-3"
    known = {**json.loads(path.read_text()), "watermark": 77, "statistics": "stat-1"}
    path.write_text(json.dumps(known))

    all_of(connector, connector.metadata.load_table(table.name))

    found = document(warehouse, 4)
    assert (found["watermark"], found["statistics"]) == (77, "stat-1")


def test_each_group_has_an_identifier_of_its_own(connector: Connector, warehouse: Path) -> None:
    table = small_files(connector)
    compaction = compaction_of(connector)
    compaction.begin(table, "compaction")
    parts = compacted(connector, table, planned(connector, table))

    first = publish(connector, table, parts[:1])
    second = publish(connector, table, parts[1:])
    later = connector.metadata.load_table(NAME)
    append(connector, [{"id": 7, "p": 0}], "more")
    third = all_of(connector, connector.metadata.load_table(NAME))

    made = [each.snapshot.snapshot_id for each in (first, second, third) if each.snapshot]
    assert made == [4, 5, 7]
    assert [document(warehouse, n)["commitIdentifier"] for n in made] == [2, 3, 4]
    found = compaction.commits(later, "compaction")
    assert [each.snapshot_id for each in found] == made
    assert connector.writes.find_commit(later, "compaction") is None
    compaction.end(later, "compaction")
    assert not list(warehouse.rglob("consumer/consumer-*compaction"))


def test_new_files_are_never_in_the_way(connector: Connector, warehouse: Path) -> None:
    table = small_files(connector)
    results = compacted(connector, table, planned(connector, table))
    append_with_pypaimon(table, [{"id": 50, "p": 0}])
    append(connector, [{"id": 51, "p": 1}], "other")

    group = publish(connector, table, results)

    assert group.lost == frozenset()
    assert {row["id"] for row in read(connector)} == {0, 10, 20, 50, 51}
    assert document(warehouse, 6)["totalRecordCount"] == 8


@pytest.mark.parametrize("options", [{}, VECTORS], ids=["copy-on-write", "deletion vectors"])
def test_who_removes_or_marks_an_input_is_in_the_way(
    connector: Connector, warehouse: Path, options: dict[str, str]
) -> None:
    table = small_files(connector, options, rows_each=4)
    results = compacted(connector, table, planned(connector, table))
    lost = {r.part.number for r in results if r.part.partition == partition_key({"p": 0})}
    now = connector.metadata.load_table(NAME)
    file = next(f for f in connector.metadata.plan_files(now) if f.partition["p"] == 0)
    gone = change_rows(now, rows.DELETE, [{"file": file.ordinal, "position": 1}])
    merge(connector, now, gone, operation_id="other")
    expected = read(connector)

    group = publish(connector, table, results)

    assert group.lost == lost
    assert set(group.done.partitions) == {partition_key({"p": 1})}
    assert read(connector) == expected
    assert len(expected) == 23
    assert not {path.name for path in warehouse.rglob("*.parquet")} & file_names(results, 0)
    assert is_clean(warehouse)


def test_nothing_is_published_if_all_is_lost(connector: Connector, warehouse: Path) -> None:
    table = small_files(connector)
    results = compacted(connector, table, planned(connector, table))
    all_of(connector, table)
    expected = read(connector)

    group = publish(connector, table, results)

    assert group.snapshot is None
    assert group.lost == {0, 1}
    assert snapshot_ids(connector) == [1, 2, 3, 4]
    assert read(connector) == expected
    assert is_clean(warehouse)


def test_vectors_of_other_files_stay(connector: Connector, warehouse: Path) -> None:
    """An index file has vectors of a file that is compacted and of one that is not."""
    create(connector, {"id": "int", "p": "int"}, ["p"], VECTORS)
    for number in range(3):
        values = [{"id": 100 * number + row, "p": 0} for row in range(20)]
        append(connector, values, f"op-{number}")
    table = connector.metadata.load_table(NAME)
    marks = [{"file": 0, "position": n} for n in range(5)] + [{"file": 1, "position": 3}]
    merge(connector, table, change_rows(table, rows.DELETE, marks), operation_id="mark")
    table = connector.metadata.load_table(NAME)
    assert len(table.native.files.index_files) == 1
    spec = CompactSpec(deleted_share=0.2, target_file_size="1 b", small_file_share=0)
    group = planned(connector, table, spec)
    assert [part.native.files[0].ordinal for part in group.parts] == [0]
    results = compacted(connector, table, group, spec)
    # Meanwhile, the other file gets another vector.
    more = change_rows(table, rows.DELETE, [{"file": 1, "position": 4}])
    merge(connector, table, more, operation_id="other")
    expected = read(connector)

    published = publish(connector, table, results)

    assert published.lost == frozenset()
    assert read(connector) == expected
    assert len(expected) == 60 - 7
    latest = connector.metadata.load_table(NAME).native
    assert [each.cardinality for each in latest.files.vectors.values()] == [2]
    assert is_clean(warehouse)


class FilesOfASlowerWriter:
    """Before the first snapshots are created, somebody else marks a row of file 1, then appends."""

    def __init__(self, connector: Connector, table: TableHandle) -> None:
        self._files = HardLinkFiles()
        self._connector, self._table = connector, table
        self._turns = iter(("mark", "append"))

    def create(self, path: str, text: str) -> bool:
        turn = next(self._turns, None)
        if turn == "mark":
            more = change_rows(self._table, rows.DELETE, [{"file": 1, "position": 4}])
            merge(self._connector, self._table, more, operation_id="other")
        elif turn == "append":
            append(self._connector, [{"id": 99, "p": 0}], "append")
        return self._files.create(path, text)

    def write_hint(self, path: str, text: str) -> None:
        self._files.write_hint(path, text)


def test_lost_attempts_leave_nothing(connector: Connector, warehouse: Path) -> None:
    create(connector, {"id": "int", "p": "int"}, ["p"], VECTORS)
    for number in range(3):
        values = [{"id": 100 * number + row, "p": 0} for row in range(20)]
        append(connector, values, f"op-{number}")
    table = connector.metadata.load_table(NAME)
    marks = [{"file": 0, "position": n} for n in range(5)] + [{"file": 1, "position": 3}]
    merge(connector, table, change_rows(table, rows.DELETE, marks), operation_id="mark")
    table = connector.metadata.load_table(NAME)
    spec = CompactSpec(deleted_share=0.2, target_file_size="1 b", small_file_share=0)
    results = compacted(connector, table, planned(connector, table, spec), spec)
    own: Any = compaction_of(connector)
    slower = SnapshotFiles(FilesOfASlowerWriter(connector, table))
    raced = PaimonCompaction(own._metadata, own._filesystem, slower)

    published = raced.publish(table, results, GroupCommit("compaction", noted))

    assert published.snapshot is not None
    assert published.snapshot.snapshot_id == 7
    assert len(read(connector)) == 60 - 7 + 1
    assert is_clean(warehouse)


def test_a_changed_schema_makes_the_plan_void(connector: Connector, warehouse: Path) -> None:
    table = small_files(connector)
    results = compacted(connector, table, planned(connector, table))
    from pypaimon.schema.data_types import AtomicType
    from pypaimon.schema.schema_change import SchemaChange

    catalog: Any = connector.metadata
    change = SchemaChange.add_column("more", AtomicType("INT"))
    catalog._catalog.alter_table("shop.orders", [change], False)

    with pytest.raises(CommitError) as caught:
        publish(connector, table, results)

    assert caught.value.code is ErrorCode.COMMIT_CONFLICT
    assert snapshot_ids(connector) == [1, 2, 3]


def test_who_does_not_want_it_any_more_publishes_nothing(connector: Connector) -> None:
    table = small_files(connector)
    results = compacted(connector, table, planned(connector, table))

    def given_up() -> None:
        raise CommitError(ErrorCode.RUN_GIVEN_UP, "over")

    with pytest.raises(CommitError, match="RUN_GIVEN_UP"):
        compaction_of(connector).publish(table, results, GroupCommit("c", noted, given_up))
    assert snapshot_ids(connector) == [1, 2, 3]


def test_the_record_of_a_group_survives_its_snapshot(connector: Connector) -> None:
    table = small_files(connector)
    results = compacted(connector, table, planned(connector, table))

    def recorded(done: PublishedParts, lost: frozenset[int]) -> Mapping[str, str]:
        del lost
        records = (PartitionRecord.of(each, complete=True) for each in done.partitions.values())
        return GroupRecord(tuple(records), 3).to_property()

    compaction = compaction_of(connector)
    compaction.begin(table, "c")
    group = compaction.publish(table, results, GroupCommit("c", recorded))

    (commit,) = compaction.commits(connector.metadata.load_table(NAME), "c")
    record = GroupRecord.of_properties(commit.properties)
    assert record.changelog_files == 3
    assert [each.partition(["p"]) for each in record.partitions] == list(
        group.done.partitions.values()
    )
