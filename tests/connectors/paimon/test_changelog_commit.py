"""A snapshot has the changelog of its statement; a commit that fails leaves none behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pypaimon.manifest.manifest_file_manager import ManifestFileManager
from pypaimon.manifest.manifest_list_manager import ManifestListManager

from spark_jobs.connectors.paimon.commit.merge_writes import PaimonMergeWrites
from spark_jobs.connectors.paimon.commit.publish import SnapshotFiles
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.sinks import MergeHandle
from spark_jobs.spi.tables import TableHandle
from spark_jobs.spi.writes import Fragment
from spark_jobs.storage.hard_link import HardLinkFiles
from tests.support.paimon_changelogs import with_changelogs
from tests.support.paimon_tables import (
    NAME,
    append_with_pypaimon,
    begin,
    inserts,
    read,
    snapshot_ids,
    store,
)
from tests.support.reachable import needed, stored

Begun = tuple[MergeHandle, list[Fragment]]


@pytest.fixture
def folder(connector: Connector, warehouse: Path) -> Path:
    """A table with rows 0 to 2, in snapshots 1 to 3."""
    return with_changelogs(connector, warehouse, 3)


@pytest.fixture
def table(connector: Connector, folder: Path) -> TableHandle:
    return connector.metadata.load_table(NAME)


@pytest.fixture
def begun(connector: Connector, table: TableHandle) -> Begun:
    """A write that inserts row 5."""
    handle = begin(connector, table)
    return handle, store(handle, inserts(table, [{"id": 5, "v": "new"}]))


def test_the_snapshot_names_and_counts_its_changelog(
    connector: Connector, table: TableHandle, folder: Path, begun: Begun
) -> None:
    connector.writes.finish_merge(table, *begun, {})

    latest = connector.metadata.load_table(NAME).native
    document = json.loads((folder / "snapshot/snapshot-4").read_text())
    path = folder / "manifest" / document["changelogManifestList"]
    assert document["changelogManifestListSize"] == path.stat().st_size
    assert document["changelogRecordCount"] == 1
    assert document["deltaRecordCount"] == 1
    manifests = ManifestListManager(latest.table).read_changelog(latest.snapshot)
    (entry,) = ManifestFileManager(latest.table).read_entries_parallel(manifests)
    assert entry.file.file_name.startswith("changelog-")
    assert (folder / "bucket-0" / entry.file.file_name).is_file()
    assert stored(folder) == needed(folder)


def test_a_conflict_leaves_no_changelog(
    connector: Connector, table: TableHandle, folder: Path, begun: Begun
) -> None:
    append_with_pypaimon(table, [{"id": 5, "v": "theirs"}])

    with pytest.raises(JobError) as caught:
        connector.writes.finish_merge(table, *begun, {})
    connector.writes.abort_merge(table, begun[0])

    assert caught.value.code is ErrorCode.COMMIT_CONFLICT
    assert stored(folder) == needed(folder)
    assert {"id": 5, "v": "theirs"} in read(connector)


class FilesOfASlowerWriter:
    """Before the first snapshot is created, somebody else commits one without changes."""

    def __init__(self, table: TableHandle) -> None:
        self._files = HardLinkFiles()
        self._table: TableHandle | None = table

    def create(self, path: str, text: str) -> bool:
        if self._table is not None:
            allowing = self._table.native.table.copy({"snapshot.ignore-empty-commit": "false"})
            allowing.new_batch_write_builder().new_commit().commit([])
            self._table = None
        return self._files.create(path, text)

    def write_hint(self, path: str, text: str) -> None:
        self._files.write_hint(path, text)


def test_the_manifests_of_a_lost_race_go(
    connector: Connector, table: TableHandle, folder: Path, begun: Begun
) -> None:
    writes: Any = connector.writes
    slower = SnapshotFiles(FilesOfASlowerWriter(table))
    raced = PaimonMergeWrites(writes._metadata, connector.storage.filesystem, slower)

    committed = raced.finish_merge(table, *begun, {})

    assert committed.snapshot_id == 5
    assert snapshot_ids(connector) == [1, 2, 3, 4, 5]
    assert stored(folder) == needed(folder)
    assert len(list(folder.rglob("changelog-*.parquet"))) == 4
