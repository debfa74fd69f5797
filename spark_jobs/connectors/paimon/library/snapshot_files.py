"""The documents of snapshots and tags, parsed and formatted with pypaimon. Driver only."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from spark_jobs.connectors.paimon.library.metadata_checks import require_sound_snapshot


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
