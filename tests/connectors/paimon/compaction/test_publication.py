"""Publishing compactions beside others: who is in the way, and what the snapshot says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.connectors.paimon.commit.publish import SnapshotFiles
from spark_jobs.connectors.paimon.compaction.compaction import PaimonCompaction
from spark_jobs.connectors.paimon.library import manifest_files
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.compaction_record import GroupRecord, PartitionRecord
from spark_jobs.contract.partition_names import partition_key
from spark_jobs.errors import CommitError, ErrorCode, JobError
from spark_jobs.spi import rows
from spark_jobs.spi.compaction import (
    CompactionGroup,
    ConnectorCompaction,
    GroupCommit,
    PartResult,
    PublishedGroup,
    PublishedParts,
)
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import TableHandle
from spark_jobs.storage.hard_link import HardLinkFiles
from tests.connectors.paimon.reachable import needed, stored
from tests.support.paimon_appends import as_compacted
from tests.support.paimon_tables import (
    NAME,
    append,
    append_with_pypaimon,
    begin,
    change_rows,
    create,
    inserts,
    merge,
    read,
    schema_of,
    snapshot_ids,
    store,
)

FULL = CompactSpec(mode="full")
VECTORS = {"deletion-vectors.enabled": "true"}


def small_files(
    connector: Connector, options: Mapping[str, str] | None = None, *, rows_each: int = 1
) -> TableHandle:
    """Two partitions with three files each, snapshot 3; ids are the file's number times ten."""
    create(connector, {"id": "int", "p": "int"}, ["p"], options)
    for number in range(3):
        ids = [10 * number + row for row in range(rows_each)]
        append(connector, [{"id": i, "p": p} for p in (0, 1) for i in ids], f"op-{number}")
    return connector.metadata.load_table(NAME)


def planned(connector: Connector, table: TableHandle, spec: CompactSpec = FULL) -> CompactionGroup:
    """The only group of a plan."""
    (group,) = compaction_of(connector).plan(table, spec, lambda _: True).groups
    return group


def compaction_of(connector: Connector) -> ConnectorCompaction:
    assert connector.compaction is not None
    return connector.compaction


def compacted(
    connector: Connector, table: TableHandle, group: CompactionGroup, spec: CompactSpec = FULL
) -> list[PartResult]:
    """The parts of a group, whose files are written."""
    compactor = compaction_of(connector).compactor(table, spec)
    return [
        PartResult(part, tuple(compactor.compact(part.native, f"task-{part.number}")))
        for part in group.parts
    ]


def noted(done: PublishedParts, lost: frozenset[int]) -> dict[str, str]:
    """Properties that say what was published."""
    return {"done": json.dumps(sorted(done.partitions)), "lost": json.dumps(sorted(lost))}


def publish(
    connector: Connector, table: TableHandle, results: Sequence[PartResult]
) -> PublishedGroup:
    return compaction_of(connector).publish(table, results, GroupCommit("compaction", noted))


def all_of(connector: Connector, table: TableHandle) -> PublishedGroup:
    """A whole compaction."""
    return publish(connector, table, compacted(connector, table, planned(connector, table)))


def document(warehouse: Path, snapshot_id: int) -> dict[str, Any]:
    folder = warehouse / "shop.db" / "orders"
    found: dict[str, Any] = json.loads((folder / f"snapshot/snapshot-{snapshot_id}").read_text())
    return found


def file_names(results: Sequence[PartResult], partition: int) -> set[str]:
    """The names of the new files in a partition."""
    return {
        file["path"].rpartition("/")[2]
        for result in results
        if result.part.partition == partition_key({"p": partition})
        for fragment in result.fragments
        for file in fragment.document["compacted"]["added"]
    }


def is_clean(warehouse: Path) -> bool:
    folder = warehouse / "shop.db" / "orders"
    return stored(folder) == needed(folder)


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
    assert len(table.native.index_files) == 1
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
    assert [each.cardinality for each in latest.vectors.values()] == [2]
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


class TestKeyed:
    @pytest.fixture
    def table(self, connector: Connector) -> TableHandle:
        """Three runs of the keys 1 and 3."""
        create(
            connector,
            {"id": "int", "v": "string"},
            options={"bucket": "1", "write-only": "true"},
            primary_key=["id"],
        )
        for number in range(3):
            values = [{"id": key, "v": f"{number}"} for key in (1, 3)]
            append(connector, values, f"op-{number}")
        return connector.metadata.load_table(NAME)

    def test_records_of_level_0_are_never_in_the_way(
        self, connector: Connector, table: TableHandle, warehouse: Path
    ) -> None:
        results = compacted(connector, table, planned(connector, table))
        append(connector, [{"id": 1, "v": "new"}, {"id": 2, "v": "new"}], "other")

        group = publish(connector, table, results)

        assert group.lost == frozenset()
        assert [row["v"] for row in read(connector)] == ["new", "new", "2"]
        assert document(warehouse, 5)["totalRecordCount"] == 4

    def test_a_file_of_the_level_within_the_keys_is_in_the_way(
        self, connector: Connector, table: TableHandle, warehouse: Path
    ) -> None:
        results = compacted(connector, table, planned(connector, table))
        builder = table.native.table.new_batch_write_builder()
        write, commit = builder.new_write(), builder.new_commit()
        import pyarrow as pa

        write.write_arrow(pa.Table.from_pylist([{"id": 2, "v": "x"}], schema=schema_of(table)))
        messages = write.prepare_commit()
        as_compacted(messages)
        commit.commit(messages)

        group = publish(connector, table, results)

        assert (group.snapshot, group.lost) == (None, {0})
        assert is_clean(warehouse)

    def test_an_append_does_not_fail_on_it(self, connector: Connector, table: TableHandle) -> None:
        handle = begin(connector, table, "append")
        fragments = store(handle, inserts(table, [{"id": 1, "v": "mine"}]))
        all_of(connector, table)

        assert connector.writes.finish_merge(table, handle, fragments, {}).snapshot_id == 5
        assert [row["v"] for row in read(connector)] == ["mine", "2"]


class TestMergesBesideIt:
    """A merge that began before a compaction, and commits after it."""

    def test_it_does_not_fail_where_files_were_not_taken(self, connector: Connector) -> None:
        table = small_files(connector, rows_each=2)
        handle = begin(connector, table)
        file = next(f for f in connector.metadata.plan_files(table) if f.partition["p"] == 1)
        gone = change_rows(table, rows.DELETE, [{"file": file.ordinal, "position": 0}])
        fragments = store(handle, gone)
        results = compacted(connector, table, planned(connector, table))
        kept = [r for r in results if r.part.partition == partition_key({"p": 0})]
        publish(connector, table, kept)

        connector.writes.finish_merge(table, handle, fragments, {})

        assert len(read(connector)) == 11

    def test_it_conflicts_where_its_file_was_taken(self, connector: Connector) -> None:
        table = small_files(connector, rows_each=2)
        handle = begin(connector, table)
        fragments = store(handle, change_rows(table, rows.DELETE, [{"file": 0, "position": 0}]))
        all_of(connector, table)

        with pytest.raises(JobError) as caught:
            connector.writes.finish_merge(table, handle, fragments, {})
        assert caught.value.code is ErrorCode.COMMIT_CONFLICT
        assert len(read(connector)) == 12


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
