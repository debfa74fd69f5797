"""One attempt to publish a change as the snapshot after the latest one. Driver only."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from spark_jobs.connectors.paimon.commit.new_snapshot import (
    Change,
    Commit,
    SnapshotWriter,
)
from spark_jobs.connectors.paimon.commit.publish import SnapshotStore
from spark_jobs.connectors.paimon.library import stored_snapshots
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.connectors.shared.commit.commit_loop import before_publication, publish_once


def publish_snapshot(
    store: SnapshotStore,
    latest: PinnedTable,
    change: Change,
    commit: Commit,
    require_wanted: Callable[[], None],
    completed: Callable[[Any], Any] = lambda snapshot: snapshot,
) -> int | None:
    """The id of the new snapshot, after that of ``latest``; None if another writer took it.

    The manifests of a snapshot that was certainly not published are removed. ``require_wanted`` is
    called last, and raises a JobError if the snapshot is no longer wanted. ``completed`` turns the
    snapshot into the one that is published.

    Raises:
        CommitError: COMMIT_OUTCOME_UNKNOWN, or COMMIT_CONFLICT: the table is no longer there.
        InternalError: STORAGE_UNAVAILABLE (nothing was published).
        JobError: raised by ``require_wanted`` (nothing was published).
    """
    writer = SnapshotWriter(latest, commit)
    with before_publication():
        new = writer.write(change, latest.snapshot)
        new.snapshot = completed(new.snapshot)

    def look_up() -> bool | None:
        found = stored_snapshots.find_snapshot(latest.table, new.snapshot.id)
        return None if found is None else stored_snapshots.is_same_snapshot(found, new.snapshot)

    is_published = publish_once(
        f"snapshot {new.snapshot.id}",
        require_wanted,
        partial(store.publish, latest, new),
        look_up,
        partial(writer.discard, new),
    )
    return int(new.snapshot.id) if is_published else None
