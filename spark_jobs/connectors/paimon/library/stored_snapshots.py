"""Snapshots, read from a table's storage with pypaimon. Driver only."""

from __future__ import annotations

from typing import Any

from spark_jobs.connectors.paimon.library.metadata_checks import (
    place_of_metadata,
    reading_metadata,
    require_sound_snapshot,
)
from spark_jobs.connectors.paimon.library.snapshot_files import parse_snapshot
from spark_jobs.connectors.paimon.library.text_files import text_of
from spark_jobs.formats.paimon.metadata_files import ids_of


def latest_snapshot(table: Any) -> Any | None:
    """The current latest snapshot; checks the LATEST hint against the snapshot files.

    Raises:
        CatalogError: METADATA_UNREADABLE.
    """
    with reading_metadata(place_of_metadata(table)):
        manager = table.snapshot_manager()
        snapshot = manager.get_latest_snapshot()
        if snapshot is not None:
            require_sound_snapshot(snapshot)
            if not table.file_io.exists(manager.get_snapshot_path(snapshot.id)):
                raise ValueError(f"the latest snapshot says that it is {snapshot.id}")
        return snapshot


def find_snapshot(table: Any, snapshot_id: int) -> Any | None:
    """The snapshot with this id; None if it has expired or never existed.

    Raises:
        CatalogError: METADATA_UNREADABLE.
    """
    with reading_metadata(place_of_metadata(table)):
        path = table.snapshot_manager().get_snapshot_path(snapshot_id)
        text = text_of(table.file_io, path)
        return None if text is None else parse_snapshot(text, snapshot_id)


def is_same_snapshot(one: Any, other: Any) -> bool:
    """Whether both are the same attempt of a commit, wherever they were read.

    Compares the names of their manifest lists, which are unique. ``uuid`` would not do: servers
    that do not know this field yet lose it.
    """
    return bool(one.delta_manifest_list == other.delta_manifest_list)


def snapshot_ids(table: Any) -> list[int]:
    """The ids of all snapshots that still exist, in ascending order; reads only file names.

    Raises:
        CatalogError: METADATA_UNREADABLE.
    """
    with reading_metadata(place_of_metadata(table)):
        directory = table.snapshot_manager().snapshot_dir
        if not table.file_io.exists(directory):
            return []
        names = (info.path.rpartition("/")[2] for info in table.file_io.list_status(directory))
        return ids_of("snapshot", names)
