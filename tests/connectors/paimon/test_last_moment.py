"""What happens to a table in the last moment before a snapshot is stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.connectors.paimon.commit.merge_writes import PaimonMergeWrites
from spark_jobs.connectors.paimon.commit.publish import SnapshotFiles
from spark_jobs.contract.request import TableName
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import TableHandle
from spark_jobs.storage.hard_link import HardLinkFiles
from tests.connectors.paimon.test_conflicts import begun, outcome
from tests.support.paimon_tables import (
    NAME,
    append,
    append_with_pypaimon,
    create,
    inserts,
    read,
    snapshot_ids,
    store,
)


@pytest.fixture(params=[False, True], ids=["copy-on-write", "deletion vectors"])
def table(connector: Connector, request: pytest.FixtureRequest) -> TableHandle:
    """A file of two rows in each of the partitions 0 and 1."""
    options = {"deletion-vectors.enabled": "true"} if request.param else {}
    create(connector, {"id": "int", "p": "int"}, ["p"], options)
    append(connector, [{"id": i, "p": i % 2} for i in range(4)], "first")
    return connector.metadata.load_table(NAME)


class TakenAway:
    """The storage of a table that is dropped, and perhaps made anew, when a file is to be made."""

    def __init__(self, connector: Connector, name: TableName, moment: str) -> None:
        self._connector, self._name, self._moment = connector, name, moment
        self._tries = 0

    def create(self, path: str, text: str) -> bool:
        self._tries += 1
        if self._tries == 1:
            table = self._connector.metadata.load_table(self._name).native.table
            table.catalog_environment.catalog_loader.load().drop_table(str(self._name))
            if self._moment != "dropped only":
                create(self._connector, {"id": "int"}, name=self._name)
            if self._moment == "between two tries":
                raise OSError("connection reset")
        return HardLinkFiles().create(path, text)

    def write_hint(self, path: str, text: str) -> None:
        HardLinkFiles().write_hint(path, text)


@pytest.mark.parametrize("moment", ["in the last moment", "between two tries", "dropped only"])
def test_a_table_that_is_taken_away_while_its_snapshot_is_stored(
    connector: Connector, moment: str
) -> None:
    name = TableName("shop", "new")
    table = create(connector, {"id": "int"}, name=name)
    handle = begun(connector, table, lambda _: ())
    fragments = store(handle, inserts(table, [{"id": 1}]))
    own = connector.writes
    assert isinstance(own, PaimonMergeWrites)
    files = SnapshotFiles(TakenAway(connector, name, moment))
    writes = PaimonMergeWrites(own._metadata, connector.storage.filesystem, files)

    message = outcome(lambda: writes.finish_merge(table, handle, fragments, {}))

    assert "was dropped while the statement ran" in message
    if moment == "dropped only":
        create(connector, {"id": "int"}, name=name)
    assert (snapshot_ids(connector, name), read(connector, name=name)) == ([], [])
    append_with_pypaimon(connector.metadata.load_table(name), [{"id": 5}])
    assert snapshot_ids(connector, name) == [1]


class RolledBack:
    """The storage of a table that is rolled back, and gets other snapshots, in the last moment."""

    def __init__(self, table: TableHandle) -> None:
        self._table = table

    def create(self, path: str, text: str) -> bool:
        self._table.native.table.rollback_to(1)
        append_with_pypaimon(self._table, [{"id": 31, "p": 0}])
        return HardLinkFiles().create(path, text)

    def write_hint(self, path: str, text: str) -> None:
        HardLinkFiles().write_hint(path, text)


def test_a_rollback_in_the_last_moment(connector: Connector, table: TableHandle) -> None:
    append(connector, [{"id": 7, "p": 1}], "second")
    now = connector.metadata.load_table(NAME)
    handle = begun(connector, now, lambda _: ())
    fragments = store(handle, inserts(now, [{"id": 8, "p": 1}]))
    own = connector.writes
    assert isinstance(own, PaimonMergeWrites)
    files = SnapshotFiles(RolledBack(table))
    writes = PaimonMergeWrites(own._metadata, connector.storage.filesystem, files)

    message = outcome(lambda: writes.finish_merge(now, handle, fragments, {}))

    assert "was rolled back" in message
    assert snapshot_ids(connector) == [1, 2]
    assert sorted(row["id"] for row in read(connector)) == [0, 1, 2, 3, 31]


def test_a_rollback_that_has_left_a_later_snapshot(
    connector: Connector, table: TableHandle
) -> None:
    """The hint says an earlier one already; the statement's base is still there."""
    append(connector, [{"id": 7, "p": 1}], "second")
    append(connector, [{"id": 8, "p": 1}], "third")
    now = connector.metadata.load_table(NAME)
    handle = begun(connector, now, lambda _: ())
    fragments = store(handle, inserts(now, [{"id": 9, "p": 1}]))
    snapshots = Path(now.native.table.table_path) / "snapshot"
    (snapshots / "snapshot-2").unlink()
    (snapshots / "LATEST").write_text("1")

    message = outcome(lambda: connector.writes.finish_merge(now, handle, fragments, {}))

    assert "Snapshot 3, on which the statement builds, has expired or was rolled back" in message
    assert snapshot_ids(connector) == [1, 3]
