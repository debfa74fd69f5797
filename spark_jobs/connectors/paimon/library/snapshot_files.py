"""The documents of snapshots and tags, read and written by pypaimon. Driver only."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from spark_jobs.connectors.paimon.library.metadata_checks import require_sound_snapshot


def parse_snapshot(text: str, snapshot_id: int) -> Any:
    """The snapshot behind its file's text.

    Raises:
        ValueError: it is not that snapshot.
    """
    from pypaimon.common.json_util import JSON
    from pypaimon.snapshot.snapshot import Snapshot

    snapshot = JSON.from_json(text, Snapshot)
    require_sound_snapshot(snapshot, snapshot_id)
    return snapshot


def parse_tag(text: str) -> Any:
    """The tag behind its file's text: a snapshot that may have a retention.

    Raises:
        ValueError: it is none.
    """
    from pypaimon.common.json_util import JSON
    from pypaimon.tag.tag import Tag

    tag = JSON.from_json(text, Tag)
    require_sound_snapshot(tag)
    return tag


def tag_text(snapshot: Any, retention: timedelta | None) -> str:
    """The file of a tag of ``snapshot``; without a retention it is the snapshot's own."""
    from pypaimon.common.json_util import JSON
    from pypaimon.tag.tag import Tag

    if retention is None:
        return str(JSON.to_json(snapshot, indent=2))
    # Java counts a tag's age in its own zone; so does pypaimon.
    now = datetime.now()  # noqa: DTZ005
    tag = Tag.from_snapshot_and_tag_ttl(snapshot, retention, now)
    return str(JSON.to_json(tag, indent=2))


def snapshot_of_tag(tag: Any) -> Any:
    """The snapshot that a tag is of."""
    return tag.trim_to_snapshot()


def is_over(tag: Any) -> bool:
    """Whether the retention of a tag is over; never for one without."""
    if tag.tag_create_time is None or tag.tag_time_retained is None:
        return False
    return bool(tag.tag_create_time + tag.tag_time_retained < datetime.now())  # noqa: DTZ005


def snapshot_json(snapshot: Any) -> str:
    """The snapshot file's text."""
    from pypaimon.common.json_util import JSON

    text: str = JSON.to_json(snapshot, indent=2)
    return text
