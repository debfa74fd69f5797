"""Looking up the snapshot that an operation committed. Driver only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.commit.guard import guard_of
from spark_jobs.connectors.paimon.library import stored_snapshots
from spark_jobs.connectors.paimon.table.table_handle import pinned_table
from spark_jobs.connectors.shared.commit.refusals import expired
from spark_jobs.contract.undone import Undone
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.spi.tables import CommittedSnapshot, TableHandle
from spark_jobs.storage.parallel import in_parallel

# The commit identifier of all snapshots of this project; the commit user is the operation id.
COMMIT_IDENTIFIER: Final = 1
# The number of snapshots that are read at a time.
_READ_AT_ONCE: Final = 64


def is_made_by(snapshot: Any, operation_id: str) -> bool:
    """Whether the operation committed the snapshot."""
    identity = (snapshot.commit_user, snapshot.commit_identifier)
    return bool(identity == (operation_id, COMMIT_IDENTIFIER))


def find_commit(
    filesystem: pafs.FileSystem, table: TableHandle, operation_id: str
) -> CommittedSnapshot | None:
    """The snapshot that the operation committed, searched for from the latest one backwards.

    One that was taken back since is none.

    Raises:
        CommitError: COMMIT_HISTORY_EXPIRED: snapshots since the guarded base have expired.
    """
    target = pinned_table(table)
    ids = stored_snapshots.snapshot_ids(target.table)
    base = guard_of(filesystem, target, operation_id).base()
    # No try of the operation writes anything before it sets its guard.
    since = [i for i in ids if base is None or i >= base]
    for snapshot, counts in newest_first(target.table, since):
        if counts and is_made_by(snapshot, operation_id):
            return _committed(snapshot)
    if base is not None and ids:
        _require_all_since(base, ids, table, operation_id)
    return None


def recall(table: TableHandle, snapshot_id: int) -> CommittedSnapshot | None:
    """The snapshot of this id, if the table has it.

    None: it was rolled back, or taken back by a later commit, or never was.

    Raises:
        CommitError: COMMIT_HISTORY_EXPIRED: it may have expired.
    """
    native = pinned_table(table).table
    ids = stored_snapshots.snapshot_ids(native)
    if snapshot_id in ids:
        for snapshot, counts in newest_first(native, [i for i in ids if i >= snapshot_id]):
            if snapshot.id == snapshot_id:
                return _committed(snapshot) if counts else None
    if ids and snapshot_id < ids[0]:
        raise expired(snapshot_id, table.name)
    return None


def newest_first(table: Any, ids: Sequence[int]) -> Iterator[tuple[Any, bool]]:
    """The snapshots of ascending ``ids``, from the last one on, and whether they count."""
    undone, find = Undone(), partial(stored_snapshots.find_snapshot, table)
    ordered = ids[::-1]
    for start in range(0, len(ordered), _READ_AT_ONCE):
        for snapshot in in_parallel(find, ordered[start : start + _READ_AT_ONCE]):
            if snapshot is not None:
                yield snapshot, undone.counts(snapshot.properties or {})


def _committed(snapshot: Any) -> CommittedSnapshot:
    return CommittedSnapshot(snapshot.id, dict(snapshot.properties or {}))


def _require_all_since(base: int, ids: list[int], table: TableHandle, operation_id: str) -> None:
    """Check that no snapshot from the base on is gone: it might have been the operation's."""
    retained = set(ids)
    missing = next((i for i in range(base, ids[-1]) if i not in retained), None)
    if missing is not None:
        raise CommitError(
            ErrorCode.COMMIT_HISTORY_EXPIRED,
            f"Snapshot {missing} of {table.name} has expired, so whether operation "
            f"{operation_id} was committed in it cannot be known.",
            "Look at the table's rows; clear the task to run the statement once more.",
        )
