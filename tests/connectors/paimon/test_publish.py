"""Snapshots of racing processes are never lost."""

from __future__ import annotations

import multiprocessing
import multiprocessing.synchronize
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.connectors.paimon.commit.merge_writes import PaimonMergeWrites
from spark_jobs.connectors.paimon.commit.publish import SnapshotFiles
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.connector import Connector
from spark_jobs.storage.hard_link import HardLinkFiles
from tests.support.paimon_tables import NAME, begin, create, inserts, read, snapshot_ids, store

CONTEXT = multiprocessing.get_context("spawn")
PAUSE_SECONDS = 0.05
LONGEST_SECONDS = 600


def test_a_snapshot_is_created_once(tmp_path: Path) -> None:
    path = tmp_path / "snapshot" / "snapshot-1"

    assert HardLinkFiles().create(str(path), "first")
    assert not HardLinkFiles().create(str(path), "second")

    assert path.read_text() == "first"
    assert [each.name for each in path.parent.iterdir()] == ["snapshot-1"]


def test_a_link_that_was_asked_for_twice_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on NFS, when the answer to the first request is lost."""
    path, link = tmp_path / "snapshot-1", os.link

    def link_twice(source: Any, target: Any) -> None:
        link(source, target)
        link(source, target)

    monkeypatch.setattr(os, "link", link_twice)

    assert HardLinkFiles().create(str(path), "first")
    assert not HardLinkFiles().create(str(path), "second")

    assert path.read_text() == "first"
    assert [each.name for each in tmp_path.iterdir()] == ["snapshot-1"]


def test_the_hint_is_replaced_and_its_failure_ignored(tmp_path: Path) -> None:
    HardLinkFiles().write_hint(str(tmp_path / "LATEST"), "1")
    HardLinkFiles().write_hint(str(tmp_path / "LATEST"), "12")
    HardLinkFiles().write_hint(str(tmp_path / "missing" / "LATEST"), "1")

    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("LATEST", "12")]


def test_a_hint_that_can_not_be_replaced_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "LATEST").mkdir()

    HardLinkFiles().write_hint(str(tmp_path / "LATEST"), "1")

    assert [each.name for each in tmp_path.iterdir()] == ["LATEST"]


def test_readers_see_a_whole_snapshot_or_none(tmp_path: Path) -> None:
    text = "x" * 1_000_000
    path = tmp_path / "snapshot-1"
    reader = CONTEXT.Process(target=_require_whole, args=(str(path), len(text)))
    reader.start()
    time.sleep(PAUSE_SECONDS)

    HardLinkFiles().create(str(path), text)

    reader.join(LONGEST_SECONDS)
    assert reader.exitcode == 0


def _require_whole(path: str, size: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if os.path.exists(path):  # noqa: PTH110
            assert Path(path).stat().st_size == size
            return


class Meeting(HardLinkFiles):
    """Nobody's first snapshot is published before everybody has one; later ones after a pause."""

    def __init__(self, barrier: multiprocessing.synchronize.Barrier) -> None:
        self._wait = barrier.wait

    def create(self, path: str, text: str) -> bool:
        self._wait()
        self._wait = lambda: time.sleep(PAUSE_SECONDS)
        return super().create(path, text)


def _merge_with_others(warehouse: str, worker: int, count: int, barrier: Any, results: Any) -> None:
    """Insert ``count`` rows, one merge each, again after each conflict."""
    opened = open_connector(CatalogSpec("paimon", warehouse), {})
    filesystem = opened.storage.filesystem
    writes = PaimonMergeWrites(opened.metadata, filesystem, SnapshotFiles(Meeting(barrier)))
    connector = replace(opened, writes=writes)
    conflicts = 0
    for i in range(count):
        while not _try_insert(connector, worker * 1000 + i):
            conflicts += 1
    results.put((worker, conflicts))


def _try_insert(connector: Connector, value: int) -> bool:
    table = connector.metadata.load_table(NAME)
    handle = begin(connector, table, f"op-{value}")
    fragments = store(handle, inserts(table, [{"id": value}]))
    try:
        connector.writes.finish_merge(table, handle, fragments, {})
    except JobError as error:
        if error.code is not ErrorCode.COMMIT_CONFLICT:
            raise
        connector.writes.abort_merge(table, handle)
        return False
    connector.writes.release_guard(table, f"op-{value}")
    return True


@pytest.mark.slow
def test_two_processes_that_race_lose_nothing(connector: Connector, warehouse: Path) -> None:
    create(connector, {"id": "int"})
    workers, count = 2, 6
    barrier, results = CONTEXT.Barrier(workers, timeout=LONGEST_SECONDS), CONTEXT.Queue()
    processes = [
        CONTEXT.Process(
            target=_merge_with_others, args=(str(warehouse), worker, count, barrier, results)
        )
        for worker in range(workers)
    ]
    for process in processes:
        process.start()
    conflicts = sum(results.get(timeout=LONGEST_SECONDS)[1] for _ in processes)
    for process in processes:
        process.join(LONGEST_SECONDS)

    assert [process.exitcode for process in processes] == [0, 0]
    expected = [worker * 1000 + i for worker in range(workers) for i in range(count)]
    assert sorted(row["id"] for row in read(connector)) == expected
    assert snapshot_ids(connector) == list(range(1, workers * count + 1))
    assert conflicts > 0, "all began on the same base"
    # What lost a race was removed, and every guard is gone.
    assert len(list(warehouse.rglob("*.parquet"))) == workers * count
    assert list(warehouse.rglob("consumer-*")) == []


@pytest.mark.parametrize("error", [PermissionError("no links here")])
def test_storage_without_hard_links_is_reported(
    connector: Connector, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    table = create(connector, {"id": "int"})
    handle = begin(connector, table)
    fragments = store(handle, inserts(table, [{"id": 1}]))

    def refuse(_source: Any, _target: Any) -> None:
        raise error

    monkeypatch.setattr(os, "link", refuse)

    with pytest.raises(JobError, match="no links here") as raised:
        connector.writes.finish_merge(table, handle, fragments, {})

    assert raised.value.code is ErrorCode.STORAGE_UNAVAILABLE
    assert snapshot_ids(connector) == []
