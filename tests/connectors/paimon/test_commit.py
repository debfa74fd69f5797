"""Publishing a merge: one snapshot, conflicts noticed, nothing lost, nothing left behind."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.connectors.paimon.commit.merge_writes import PaimonMergeWrites
from spark_jobs.connectors.paimon.commit.new_snapshot import SnapshotWriter
from spark_jobs.connectors.paimon.commit.publish import SnapshotFiles
from spark_jobs.connectors.paimon.library import stored_snapshots
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.sinks import MergeHandle
from spark_jobs.spi.tables import TableHandle
from spark_jobs.spi.writes import Fragment
from spark_jobs.storage.hard_link import HardLinkFiles
from tests.support.paimon_tables import (
    NAME,
    append_with_pypaimon,
    begin,
    change_rows,
    create,
    four_files,
    inserts,
    merge,
    read,
    snapshot_ids,
    store,
)


@pytest.fixture
def table(connector: Connector) -> TableHandle:
    return four_files(connector)


def delete_first_row(
    connector: Connector, table: TableHandle
) -> tuple[MergeHandle, list[Fragment]]:
    handle = begin(connector, table)
    return handle, store(handle, change_rows(table, rows.DELETE, [{"file": 0, "position": 0}]))


def snapshot_file(warehouse: Path, snapshot_id: int) -> dict[str, Any]:
    path = warehouse / f"shop.db/orders/snapshot/snapshot-{snapshot_id}"
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def consumers(warehouse: Path) -> dict[str, Any]:
    folder = warehouse / "shop.db/orders/consumer"
    return {path.name: json.loads(path.read_text()) for path in folder.glob("*")}


def data_files(warehouse: Path) -> set[Path]:
    return set(warehouse.rglob("*.parquet"))


def code_of(action: Any) -> tuple[ErrorCode, str]:
    with pytest.raises(JobError) as raised:
        action()
    return raised.value.code, raised.value.message


def test_a_merge_is_one_snapshot_that_records_who_and_what(
    connector: Connector, warehouse: Path, table: TableHandle
) -> None:
    handle = begin(connector, table, "op-1")
    changes = change_rows(table, rows.DELETE, [{"file": f, "position": 0} for f in range(4)])
    fragments = store(handle, changes, inserts(table, [{"id": 99, "p": 5}]))

    found = connector.writes.finish_merge(table, handle, fragments, {"rows": "5"})

    assert (found.snapshot_id, dict(found.properties)) == (3, {"rows": "5"})
    assert snapshot_ids(connector) == [1, 2, 3]
    document = snapshot_file(warehouse, 3)
    assert document["commitUser"] == "op-1"
    assert document["commitIdentifier"] == 1
    assert document["commitKind"] == "OVERWRITE"
    assert document["properties"] == {"rows": "5"}
    assert document["totalRecordCount"] == 5
    assert (warehouse / "shop.db/orders/snapshot/LATEST").read_text() == "3"
    assert {row["id"] for row in read(connector)} == {2, 3, 12, 13, 99}


def test_new_rows_alone_are_an_append(
    connector: Connector, warehouse: Path, table: TableHandle
) -> None:
    merge(connector, table, inserts(table, [{"id": 99, "p": 5}]))

    assert snapshot_file(warehouse, 3)["commitKind"] == "APPEND"


def test_the_first_snapshot_of_a_table_is_made(connector: Connector, warehouse: Path) -> None:
    table = create(connector, {"id": "int"})
    handle = begin(connector, table, "first")
    assert consumers(warehouse) == {"consumer-merge-first": {"nextSnapshot": 1}}

    fragments = store(handle, inserts(table, [{"id": 1}]))
    assert connector.writes.finish_merge(table, handle, fragments, {}).snapshot_id == 1


def test_no_temporary_file_is_left(
    connector: Connector, warehouse: Path, table: TableHandle
) -> None:
    merge(connector, table, inserts(table, [{"id": 99, "p": 5}]))

    assert [path.name for path in warehouse.rglob(".*")] == []


@pytest.mark.parametrize("partition", [0, 7], ids=["same partition", "another partition"])
def test_rows_appended_meanwhile_are_a_conflict(
    connector: Connector, table: TableHandle, partition: int
) -> None:
    handle, fragments = delete_first_row(connector, table)
    append_with_pypaimon(table, [{"id": 50, "p": partition}])

    code, message = code_of(lambda: connector.writes.finish_merge(table, handle, fragments, {}))

    assert code is ErrorCode.COMMIT_CONFLICT
    assert "Snapshot 3 (APPEND by " in message
    assert snapshot_ids(connector) == [1, 2, 3]
    assert len(read(connector)) == 9


def test_a_merge_that_only_inserts_conflicts_too(connector: Connector, table: TableHandle) -> None:
    handle = begin(connector, table)
    fragments = store(handle, inserts(table, [{"id": 99, "p": 5}]))
    append_with_pypaimon(table, [{"id": 99, "p": 5}])

    code, _ = code_of(lambda: connector.writes.finish_merge(table, handle, fragments, {}))

    assert code is ErrorCode.COMMIT_CONFLICT
    assert [row["id"] for row in read(connector)].count(99) == 1


def test_two_merges_of_one_file_never_both_land(connector: Connector, table: TableHandle) -> None:
    first, second = begin(connector, table, "a"), begin(connector, table, "b")
    change = change_rows(table, rows.DELETE, [{"file": 0, "position": 0}])
    other = change_rows(table, rows.DELETE, [{"file": 0, "position": 1}])
    of_first, of_second = store(first, change), store(second, other)
    connector.writes.finish_merge(table, first, of_first, {})

    code, _ = code_of(lambda: connector.writes.finish_merge(table, second, of_second, {}))

    assert code is ErrorCode.COMMIT_CONFLICT
    assert len(read(connector)) == 7


def test_a_merge_on_a_table_that_got_its_first_rows_meanwhile_is_a_conflict(
    connector: Connector,
) -> None:
    table = create(connector, {"id": "int"})
    handle = begin(connector, table)
    fragments = store(handle, inserts(table, [{"id": 1}]))
    append_with_pypaimon(table, [{"id": 1}])

    code, _ = code_of(lambda: connector.writes.finish_merge(table, handle, fragments, {}))

    assert code is ErrorCode.COMMIT_CONFLICT


def test_snapshots_that_change_no_file_are_no_conflict(
    connector: Connector, warehouse: Path, table: TableHandle
) -> None:
    handle, fragments = delete_first_row(connector, table)
    commit_nothing(table)
    assert snapshot_ids(connector) == [1, 2, 3]

    found = connector.writes.finish_merge(table, handle, fragments, {})

    assert found.snapshot_id == 4
    assert len(read(connector)) == 7


def test_a_changed_schema_is_a_conflict(connector: Connector, table: TableHandle) -> None:
    from pypaimon.schema.data_types import AtomicType
    from pypaimon.schema.schema_change import SchemaChange

    handle, fragments = delete_first_row(connector, table)
    catalog = table.native.table.catalog_environment.catalog_loader.load()
    catalog.alter_table(str(NAME), [SchemaChange.add_column("n", AtomicType("INT"))])

    code, message = code_of(lambda: connector.writes.finish_merge(table, handle, fragments, {}))

    assert code is ErrorCode.COMMIT_CONFLICT
    assert "schema" in message


def test_an_expired_snapshot_in_between_is_a_conflict(
    connector: Connector, warehouse: Path, table: TableHandle
) -> None:
    handle, fragments = delete_first_row(connector, table)
    of_write = {path for path in data_files(warehouse) if handle.native.prefixes.data in path.name}
    append_with_pypaimon(table, [{"id": 50, "p": 1}])
    append_with_pypaimon(table, [{"id": 51, "p": 1}])
    before = data_files(warehouse) - of_write
    (warehouse / "shop.db/orders/snapshot/snapshot-3").unlink()

    code, message = code_of(lambda: connector.writes.finish_merge(table, handle, fragments, {}))

    assert code is ErrorCode.COMMIT_CONFLICT
    assert "Snapshot 3, committed while the statement ran, has expired" in message
    connector.writes.abort_merge(table, handle)
    assert data_files(warehouse) == before
    assert "consumer-merge-op" not in consumers(warehouse)


def test_a_file_rewritten_by_two_fragments_is_a_defect(
    connector: Connector, table: TableHandle
) -> None:
    handle, fragments = delete_first_row(connector, table)

    code, message = code_of(lambda: connector.writes.finish_merge(table, handle, fragments * 2, {}))

    assert code is ErrorCode.INTERNAL_ERROR
    assert "two tasks" in message


def test_a_merge_without_changes_is_not_published(connector: Connector, table: TableHandle) -> None:
    handle = begin(connector, table)

    code_of(lambda: connector.writes.finish_merge(table, handle, [], {}))

    assert snapshot_ids(connector) == [1, 2]


def test_the_guard_holds_the_base_until_it_is_released(
    connector: Connector, warehouse: Path, table: TableHandle
) -> None:
    handle, fragments = delete_first_row(connector, table)
    assert consumers(warehouse)["consumer-merge-op"] == {"nextSnapshot": 2}

    connector.writes.finish_merge(table, handle, fragments, {})
    assert "consumer-merge-op" in consumers(warehouse)

    connector.writes.release_guard(table, "op")
    connector.writes.release_guard(table, "op")
    assert "consumer-merge-op" not in consumers(warehouse)


def test_guards_that_nobody_came_back_for_do_not_stay_for_ever(
    connector: Connector, warehouse: Path, table: TableHandle
) -> None:
    for name in ("old", "young"):
        begin(connector, table, name)
    folder = warehouse / "shop.db/orders/consumer"
    (folder / "consumer-of-somebody").write_text('{"nextSnapshot": 1}')
    week_ago = time.time() - 7 * 24 * 3600
    for name in ("merge-old", "of-somebody"):
        os.utime(folder / f"consumer-{name}", (week_ago - 60, week_ago - 60))
    os.utime(folder / "consumer-merge-young", (week_ago + 600, week_ago + 600))

    before = set(consumers(warehouse))

    begin(connector, table, "new")

    assert set(consumers(warehouse)) == before - {"consumer-merge-old"} | {"consumer-merge-new"}


def between_check_and_commit(monkeypatch: pytest.MonkeyPatch, action: Callable[[], None]) -> None:
    """Run ``action`` once, after the look for conflicts and before the publication."""
    write = SnapshotWriter.write
    actions = [action]

    def interrupted(*arguments: Any) -> Any:
        while actions:
            actions.pop()()
        return write(*arguments)

    monkeypatch.setattr(SnapshotWriter, "write", interrupted)


def test_rows_appended_at_the_last_moment_are_a_conflict(
    connector: Connector, table: TableHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = begin(connector, table)
    fragments = store(handle, inserts(table, [{"id": 99, "p": 5}]))
    between_check_and_commit(monkeypatch, lambda: append_with_pypaimon(table, [{"id": 99, "p": 5}]))

    code, _ = code_of(lambda: connector.writes.finish_merge(table, handle, fragments, {}))

    assert code is ErrorCode.COMMIT_CONFLICT
    assert [row["id"] for row in read(connector)].count(99) == 1


def test_a_race_lost_to_a_snapshot_without_changes_is_run_again(
    connector: Connector, table: TableHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle, fragments = delete_first_row(connector, table)
    between_check_and_commit(monkeypatch, lambda: commit_nothing(table))

    assert connector.writes.finish_merge(table, handle, fragments, {}).snapshot_id == 4
    assert len(read(connector)) == 7


def commit_nothing(table: TableHandle) -> None:
    allowing = table.native.table.copy({"snapshot.ignore-empty-commit": "false"})
    allowing.new_batch_write_builder().new_commit().commit([])


class FailingFiles:
    """A storage that fails before, or after, the snapshot is there."""

    def __init__(self, files: Any, *, after: bool) -> None:
        self._files = files
        self._after = after

    def create(self, path: str, text: str) -> bool:
        if self._after:
            self._files.create(path, text)
        raise OSError("connection reset")

    def write_hint(self, path: str, text: str) -> None:
        self._files.write_hint(path, text)


def with_store(connector: Connector, store: Any) -> PaimonMergeWrites:
    writes = connector.writes
    assert isinstance(writes, PaimonMergeWrites)
    return PaimonMergeWrites(writes._metadata, connector.storage.filesystem, store)


def test_a_failure_after_the_snapshot_was_stored_is_a_success(
    connector: Connector, table: TableHandle
) -> None:
    handle, fragments = delete_first_row(connector, table)
    writes = with_store(connector, SnapshotFiles(FailingFiles(HardLinkFiles(), after=True)))

    assert writes.finish_merge(table, handle, fragments, {}).snapshot_id == 3
    assert len(read(connector)) == 7


def test_a_failure_before_the_snapshot_was_stored_is_certain(
    connector: Connector, table: TableHandle
) -> None:
    handle, fragments = delete_first_row(connector, table)
    writes = with_store(connector, SnapshotFiles(FailingFiles(HardLinkFiles(), after=False)))

    code, message = code_of(lambda: writes.finish_merge(table, handle, fragments, {}))

    assert code is ErrorCode.STORAGE_UNAVAILABLE
    assert "connection reset" in message
    assert snapshot_ids(connector) == [1, 2]


def test_an_outcome_that_can_not_be_looked_up_is_unknown(
    connector: Connector, table: TableHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle, fragments = delete_first_row(connector, table)
    writes = with_store(connector, SnapshotFiles(FailingFiles(HardLinkFiles(), after=True)))

    def unreachable(_table: Any, _snapshot_id: int) -> Any:
        raise OSError("unreachable")

    monkeypatch.setattr(stored_snapshots, "find_snapshot", unreachable)

    code, _ = code_of(lambda: writes.finish_merge(table, handle, fragments, {}))

    assert code is ErrorCode.COMMIT_OUTCOME_UNKNOWN
