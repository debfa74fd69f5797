"""What may happen to a Paimon table in the last moment before a snapshot is stored in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from spark_jobs.connectors.paimon.commit.merge_writes import PaimonMergeWrites
from spark_jobs.connectors.paimon.commit.publish import SnapshotFiles
from spark_jobs.contract.maintenance import RollbackSpec
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.connector import Connector
from spark_jobs.storage.files import remove_folder
from tests.support.paimon_tables import NAME, append, create, read, snapshot_ids

_COLUMNS = {"id": "int"}


class _LastMoment:
    """The files of a storage; ``happens`` is called before the first one is created."""

    def __init__(self, files: Any, happens: Callable[[], None]) -> None:
        self._files, self._happens, self._is_first = files, happens, True

    def create(self, path: str, text: str) -> bool:
        if self._is_first:
            self._is_first = False
            self._happens()
        return bool(self._files.create(path, text))

    def write_hint(self, path: str, text: str) -> None:
        self._files.write_hint(path, text)


def before_the_snapshot(connector: Connector, happens: Callable[[], None]) -> Connector:
    """The connector, with whose next snapshot ``happens`` meets."""
    own: Any = connector.writes
    files = SnapshotFiles(_LastMoment(own._snapshots.files, happens))
    writes = PaimonMergeWrites(own._metadata, own._filesystem, files)
    return replace(connector, writes=writes)


def drop(connector: Connector) -> None:
    """As catalogs do, with all files."""
    place = connector.metadata.load_table(NAME).native.path
    remove_folder(connector.storage.filesystem, place)


def make_anew(connector: Connector) -> None:
    """Drop the table, and create it as it was."""
    drop(connector)
    create(connector, _COLUMNS)


def conflict_of(connector: Connector, happens: Callable[[], None]) -> str:
    """The text of the conflict of a statement with what happens."""
    beside = before_the_snapshot(connector, happens)
    with pytest.raises(JobError) as raised:
        append(beside, [{"id": 1}], "late")
    assert raised.value.code is ErrorCode.COMMIT_CONFLICT
    return raised.value.message


def check_a_new_table(connector: Connector) -> None:
    """A snapshot for the table before is not in the new one, which can be read and written."""
    create(connector, _COLUMNS)

    assert "was dropped while" in conflict_of(connector, lambda: make_anew(connector))

    assert (snapshot_ids(connector), read(connector)) == ([], [])
    append(connector, [{"id": 5}], "next")
    assert read(connector) == [{"id": 5}]


def check_a_rollback(connector: Connector) -> None:
    """A snapshot on top of one that was rolled back, and made again by others, is not there."""
    create(connector, _COLUMNS)
    for number in (10, 11):
        append(connector, [{"id": number}], f"op-{number}")
        connector.writes.release_guard(connector.metadata.load_table(NAME), f"op-{number}")

    def roll_back() -> None:
        assert connector.maintenance is not None
        spec = RollbackSpec(1, force=True)
        connector.maintenance.roll_back(NAME, spec, dag_id="", dry_run=False)
        append(connector, [{"id": 12}], "other")

    assert "was rolled back" in conflict_of(connector, roll_back)

    assert snapshot_ids(connector) == [1, 2]
    assert read(connector) == [{"id": 10}, {"id": 12}]
