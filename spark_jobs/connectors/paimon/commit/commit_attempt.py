"""One attempt to publish a change as the snapshot after the latest one. Driver only."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from spark_jobs.connectors.paimon.commit.new_snapshot import (
    Change,
    Commit,
    NewSnapshot,
    SnapshotWriter,
)
from spark_jobs.connectors.paimon.commit.publish import SnapshotStore
from spark_jobs.connectors.paimon.library import stored_snapshots
from spark_jobs.connectors.paimon.table.table_handle import PaimonTable
from spark_jobs.errors import CommitError, ErrorCode, InternalError, JobError

# Seconds before each try to store one and the same snapshot.
_STORE_PAUSES: Final = (0.0, 0.1, 0.5)


def commit_attempt(
    store: SnapshotStore,
    latest: PaimonTable,
    change: Change,
    commit: Commit,
    require_wanted: Callable[[], None],
) -> int | None:
    """The id of the new snapshot; None when another writer took it.

    Raises:
        CommitError: COMMIT_OUTCOME_UNKNOWN; the snapshot's manifests stay.
        InternalError: STORAGE_UNAVAILABLE, the snapshot is certainly not there.
        JobError: of ``require_wanted``, nothing is there.
    """
    writer = SnapshotWriter(latest, commit)
    with before_publication():
        new = writer.write(change, latest.snapshot)
        try:
            require_wanted()
        except BaseException:
            writer.discard(new)
            raise
    try:
        is_published = _stored(store, latest, new)
    except InternalError:
        writer.discard(new)
        raise
    if not is_published:
        writer.discard(new)
        return None
    return int(new.snapshot.id)


@contextlib.contextmanager
def before_publication() -> Iterator[None]:
    """What fails here fails before anything was published.

    Raises:
        InternalError: STORAGE_UNAVAILABLE.
    """
    try:
        yield
    except JobError:
        raise
    except Exception as error:
        raise InternalError(
            ErrorCode.STORAGE_UNAVAILABLE,
            f"The snapshot could not be prepared: {error}",
            "Nothing was published. Check the warehouse's storage, then run the statement again.",
        ) from error


def _stored(store: SnapshotStore, latest: PaimonTable, new: NewSnapshot) -> bool:
    """Whether the snapshot is there; False: its id is another one's, for good.

    When storing fails, the same snapshot is stored again: whether its id was free, and if not,
    whose snapshot has it, tells what became of the first try.
    """
    failure: OSError | None = None
    for pause in _STORE_PAUSES:
        time.sleep(pause)
        try:
            if store.publish(latest, new):
                return True
            break
        except OSError as error:
            if not isinstance(failure, TimeoutError | ConnectionError):
                failure = error
    return failure is not None and _is_there(latest, new.snapshot, failure)


def _is_there(table: PaimonTable, attempted: Any, failure: OSError) -> bool:
    """Whether a snapshot is there whose storing failed; False: its id is another one's.

    Raises:
        CommitError: COMMIT_OUTCOME_UNKNOWN.
        InternalError: STORAGE_UNAVAILABLE, it is certainly not there.
    """
    try:
        found = stored_snapshots.find_snapshot(table.table, attempted.id)
    except (OSError, JobError) as error:
        raise CommitError(
            ErrorCode.COMMIT_OUTCOME_UNKNOWN,
            f"Storing snapshot {attempted.id} failed ({failure}), and so did looking for it.",
            "Run the statement again: it looks for its own snapshot first.",
        ) from error
    if found is not None:
        return stored_snapshots.is_same_snapshot(found, attempted)
    if isinstance(failure, TimeoutError | ConnectionError):
        raise CommitError(
            ErrorCode.COMMIT_OUTCOME_UNKNOWN,
            f"Storing snapshot {attempted.id} got no answer ({failure}): it may still appear.",
            "Run the statement again: it looks for its own snapshot first.",
        ) from failure
    raise InternalError(
        ErrorCode.STORAGE_UNAVAILABLE,
        f"Snapshot {attempted.id} could not be stored: {failure}",
        "Nothing was published. Check the warehouse's storage, then run the statement again.",
    ) from failure
