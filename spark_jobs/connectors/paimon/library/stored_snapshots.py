"""Snapshots and tags: their documents, and reading them from a table's storage. Driver only."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from spark_jobs.connectors.paimon.library.metadata_checks import (
    place_of_metadata,
    reading_metadata,
    require_sound_snapshot,
)
from spark_jobs.formats.paimon.metadata_files import ids_of


def text_of(file_io: Any, path: str) -> str | None:
    """The text of a file, by pypaimon's ``file_io``; None if there is no such file.

    Of one that goes between a request for its size and one for its content, pyarrow says that an
    object store failed, in one of several ways: so the file is looked for once more.

    Raises:
        OSError: it cannot be read.
    """
    try:
        return str(file_io.read_file_utf8(path))
    except FileNotFoundError:
        return None
    except OSError:
        if file_io.exists(path):
            raise
        return None


def parse_snapshot(text: str, snapshot_id: int) -> Any:
    """The snapshot in the text of its file.

    Raises:
        ValueError: the text is not this snapshot.
    """
    from pypaimon.common.json_util import JSON
    from pypaimon.snapshot.snapshot import Snapshot

    snapshot = JSON.from_json(text, Snapshot)
    require_sound_snapshot(snapshot, snapshot_id)
    return snapshot


def parse_tag(text: str) -> Any:
    """The tag in the text of its file: a snapshot that may have a retention.

    A tag does not keep the snapshot's changelog, which is gone once the snapshot has expired.

    Raises:
        ValueError: the text is not a tag.
    """
    from pypaimon.common.json_util import JSON
    from pypaimon.tag.tag import Tag

    tag = JSON.from_json(text, Tag)
    require_sound_snapshot(tag)
    return replace(
        tag,
        changelog_manifest_list=None,
        changelog_manifest_list_size=None,
        changelog_record_count=None,
    )


def tag_json(snapshot: Any, retention: timedelta, now: datetime) -> str:
    """The text of the file of a tag with a retention; without one, it is ``snapshot_json``."""
    from pypaimon.common.json_util import JSON
    from pypaimon.tag.tag import Tag

    tag = Tag.from_snapshot_and_tag_ttl(snapshot, retention, _local(now))
    return str(JSON.to_json(tag, indent=2))


def snapshot_of_tag(tag: Any) -> Any:
    """The snapshot that a tag names."""
    return tag.trim_to_snapshot()


def is_over(tag: Any, now: datetime) -> bool:
    """Whether a tag's retention is over; False for a tag without one."""
    if tag.tag_create_time is None or tag.tag_time_retained is None:
        return False
    return bool(tag.tag_create_time + tag.tag_time_retained < _local(now))


def _local(now: datetime) -> datetime:
    """A time as Java and pypaimon write it into tags: local and without an offset."""
    return now.astimezone().replace(tzinfo=None)


def snapshot_json(snapshot: Any) -> str:
    """The text of a snapshot's file."""
    from pypaimon.common.json_util import JSON

    text: str = JSON.to_json(snapshot, indent=2)
    return text


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
