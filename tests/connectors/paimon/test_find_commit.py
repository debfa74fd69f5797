"""A later try finds the snapshot of an earlier one, or knows for certain that there is none."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import CommittedSnapshot, TableHandle
from tests.support.paimon_tables import NAME, append, append_with_pypaimon, begin, create


@pytest.fixture
def table(connector: Connector) -> TableHandle:
    create(connector, {"id": "int"})
    append(connector, [{"id": 1}], "one")
    connector.writes.release_guard(connector.metadata.load_table(NAME), "one")
    return connector.metadata.load_table(NAME)


def expire(warehouse: Path, *snapshot_ids: int) -> None:
    for snapshot_id in snapshot_ids:
        (warehouse / f"shop.db/orders/snapshot/snapshot-{snapshot_id}").unlink()


@dataclass
class WatchedFiles:
    """A table's files; reading takes a moment, in which others may read."""

    real: Any
    requests: int = 0
    reading: int = 0
    most_reading: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def read_file_utf8(self, path: str) -> str:
        with self.lock:
            self.requests += 1
            self.reading += 1
            self.most_reading = max(self.most_reading, self.reading)
        time.sleep(0.02)
        with self.lock:
            self.reading -= 1
        text: str = self.real.read_file_utf8(path)
        return text

    def exists(self, path: str) -> bool:
        self.requests += 1
        return bool(self.real.exists(path))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


def fill_up(warehouse: Path, count: int) -> None:
    """Copies of snapshot 1 by somebody else, up to that id."""
    folder = warehouse / "shop.db/orders/snapshot"
    document = json.loads((folder / "snapshot-1").read_text())
    for number in range(2, count + 1):
        path = folder / f"snapshot-{number}"
        if not path.exists():
            path.write_text(json.dumps({**document, "id": number, "commitUser": "somebody"}))
    (folder / "LATEST").write_text(str(count))


def test_a_long_history_is_read_in_parallel_by_one_request_for_each_snapshot(
    connector: Connector, warehouse: Path, table: TableHandle
) -> None:
    fill_up(warehouse, 150)
    files = WatchedFiles(table.native.table.file_io)
    table.native.table.file_io = files

    assert connector.writes.find_commit(table, "two") is None

    # One more looks whether there is a snapshot at all.
    assert files.requests <= 150 + 1
    assert files.most_reading > 4


@pytest.mark.parametrize("made", [2, 64, 65, 86, 87, 150])
def test_a_commit_is_found_anywhere_in_a_long_history(
    connector: Connector, warehouse: Path, table: TableHandle, made: int
) -> None:
    fill_up(warehouse, made - 1)
    append(connector, [{"id": 2}], "two")
    fill_up(warehouse, 150)

    found = connector.writes.find_commit(table, "two")

    assert found is not None
    assert found.snapshot_id == made


def test_a_commit_among_the_newest_ends_the_search(
    connector: Connector, warehouse: Path, table: TableHandle
) -> None:
    fill_up(warehouse, 149)
    append(connector, [{"id": 2}], "two")
    files = WatchedFiles(table.native.table.file_io)
    table.native.table.file_io = files

    connector.writes.find_commit(table, "two")

    assert files.requests < 100


def test_an_operation_finds_its_own_snapshot(connector: Connector, table: TableHandle) -> None:
    append_with_pypaimon(table, [{"id": 2}])

    assert connector.writes.find_commit(table, "one") == CommittedSnapshot(1, {})
    assert connector.writes.find_commit(table, "two") is None


def test_a_table_without_snapshots_has_no_commit(connector: Connector) -> None:
    table = create(connector, {"id": "int"})
    begin(connector, table, "op")

    assert connector.writes.find_commit(table, "op") is None


def test_a_snapshot_made_after_the_table_was_loaded_is_found(
    connector: Connector, table: TableHandle
) -> None:
    append(connector, [{"id": 2}], "later")

    found = connector.writes.find_commit(table, "later")

    assert found is not None
    assert found.snapshot_id == 2


def test_another_identifier_of_the_same_user_is_not_ours(
    connector: Connector, table: TableHandle
) -> None:
    import pyarrow as pa

    from tests.support.paimon_tables import schema_of

    builder = table.native.table.new_stream_write_builder()._with_commit_user("op")
    write, commit = builder.new_write(), builder.new_commit()
    write.write_arrow(pa.Table.from_pylist([{"id": 5}], schema=schema_of(table)))
    commit.commit(write.prepare_commit(7), 7)

    assert connector.writes.find_commit(table, "op") is None


def test_a_gap_since_the_guarded_base_is_an_error(
    connector: Connector, warehouse: Path, table: TableHandle
) -> None:
    begin(connector, table, "op")
    for i in range(3):
        append_with_pypaimon(table, [{"id": i}])
    expire(warehouse, 1, 2)

    with pytest.raises(JobError, match=r"Snapshot 1 of shop\.orders has expired") as raised:
        connector.writes.find_commit(table, "op")

    assert raised.value.code is ErrorCode.COMMIT_HISTORY_EXPIRED


def test_expired_snapshots_before_the_base_do_not_matter(
    connector: Connector, warehouse: Path, table: TableHandle
) -> None:
    append_with_pypaimon(table, [{"id": 2}])
    begin(connector, connector.metadata.load_table(NAME), "op")
    append_with_pypaimon(table, [{"id": 3}])
    expire(warehouse, 1)

    assert connector.writes.find_commit(table, "op") is None


def test_without_a_guard_the_operation_never_wrote(
    connector: Connector, warehouse: Path, table: TableHandle
) -> None:
    append_with_pypaimon(table, [{"id": 2}])
    expire(warehouse, 1)

    assert connector.writes.find_commit(table, "op") is None


def test_a_commit_is_found_even_where_the_base_has_expired(
    connector: Connector, warehouse: Path, table: TableHandle
) -> None:
    append(connector, [{"id": 2}], "op")
    expire(warehouse, 1)

    found = connector.writes.find_commit(table, "op")

    assert found is not None
    assert found.snapshot_id == 2


def test_a_damaged_guard_is_an_error(
    connector: Connector, warehouse: Path, table: TableHandle
) -> None:
    begin(connector, table, "op")
    (warehouse / "shop.db/orders/consumer/consumer-merge-op").write_text("?")

    with pytest.raises(JobError, match="is not readable") as raised:
        connector.writes.find_commit(table, "op")

    assert raised.value.code is ErrorCode.METADATA_UNREADABLE


def test_paimon_itself_reads_the_guard(connector: Connector, table: TableHandle) -> None:
    from pypaimon.consumer.consumer_manager import ConsumerManager

    begin(connector, table, "op")
    native = table.native.table

    assert ConsumerManager(native.file_io, table.native.path).min_next_snapshot() == 1
