"""Compactions that fail in part: what is left as it was, what is compacted, and what is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.engine.compaction_lake import Lake, in_turn, names, nothing, report_of
from tests.support.paimon_tables import snapshot_ids
from tests.support.reachable import needed, stored


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


@pytest.fixture
def groups(tmp_path: Path) -> Lake:
    """Each partition is a group."""
    return Lake(tmp_path, groups_of=1)


def test_a_damaged_file_leaves_its_partition(lake: Lake) -> None:
    lake.data_file(1).write_bytes(b"PAR1 not really")

    result = lake.compact()

    report = report_of(result)
    assert result.status == "failed"
    assert result.error is not None
    assert (result.error.code, result.error.retryable) == ("DATA_FILE_UNREADABLE", False)
    assert "Not compacted: p=1 (DATA_FILE_UNREADABLE: " in result.error.message
    assert lake.data_file(1).name in result.error.message
    assert result.error.message.endswith("Compacted: p=2, p=0.")
    assert lake.files == {0: 1, 1: 7, 2: 1}
    assert names(report) == ["p=1", "p=2", "p=0"]
    assert report.partitions[0].error.startswith("DATA_FILE_UNREADABLE: ")
    assert (report.partitions_compacted, report.partitions_failed) == (2, 1)
    assert report.files_before == 14
    assert (result.new_snapshot_id, report.snapshots) == (9, (9,))
    assert lake.is_clean()


def test_all_that_fails_makes_no_snapshot(lake: Lake) -> None:
    for p in range(3):
        lake.data_file(p).unlink()

    result = lake.compact()

    assert result.error is not None
    assert result.error.code == "DATA_FILE_UNREADABLE"
    assert result.error.message.endswith("Compacted: none.")
    assert (result.new_snapshot_id, snapshot_ids(lake.plain)[-1]) == (None, 8)


def test_a_failing_task_leaves_no_files_of_its_group(
    groups: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spark_jobs.connectors.paimon.compaction.append_compactor import AppendCompactor

    real = AppendCompactor.compact
    calls = iter(range(10))

    def sometimes(self: Any, native: Any, task_key: str) -> Any:
        found = real(self, native, task_key)
        if next(calls) == 1:
            raise OSError("the disk is full")
        return found

    monkeypatch.setattr(AppendCompactor, "compact", sometimes)

    result = groups.compact()

    assert result.error is not None
    assert (result.error.code, result.error.retryable) == ("INTERNAL_ERROR", True)
    assert "p=1 (INTERNAL_ERROR: OSError: the disk is full)" in result.error.message
    assert groups.files == {0: 1, 1: 7, 2: 1}
    assert stored(groups.folder) == needed(groups.folder)
    monkeypatch.undo()
    again = groups.compact(try_number=2)
    assert again.status == "committed"
    assert report_of(again).partitions_compacted == 3
    assert groups.is_clean()


def test_who_is_given_up_publishes_nothing(groups: Lake) -> None:
    def give_up() -> None:
        for lease in groups.warehouse.glob("_operations/compact-1-*/lease"):
            lease.unlink()

    result = groups.compact(before_publication=in_turn(nothing, give_up))

    assert result.error is not None
    assert result.error.code == "RUN_GIVEN_UP"
    assert report_of(result).snapshots == (9,)
    assert groups.files == {0: 6, 1: 7, 2: 1}
    assert stored(groups.folder) == needed(groups.folder)
