"""Publishing a snapshot only if no other writer has published one with the same id. Driver only.

pypaimon itself checks and then renames, so two processes can both pass the check, and one snapshot
is lost. Each kind of storage or catalog has a ``SnapshotStore`` without this race.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from spark_jobs.connectors.paimon.library import (
    schema_evolution,
    snapshot_files,
    stored_snapshots,
    table_schema,
)
from spark_jobs.connectors.shared.commit.refusals import READ_AGAIN
from spark_jobs.errors import CommitError, ErrorCode, JobError
from spark_jobs.formats.paimon.metadata_files import entry_path, hint_path

if TYPE_CHECKING:
    from spark_jobs.connectors.paimon.commit.new_snapshot import NewSnapshot
    from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
    from spark_jobs.storage.exclusive_files import ExclusiveFiles


class SnapshotStore(Protocol):
    """Decides which of several writers makes a table's next snapshot or schema."""

    def publish(self, latest: PinnedTable, new: NewSnapshot) -> bool:
        """Publish ``new`` after the snapshot of ``latest``; return False if its id is taken.

        After a failure, a second call may return False for a snapshot that the first one published.

        Raises:
            CommitError: COMMIT_CONFLICT: the table, or its snapshot, is no longer there.
            OSError: the call failed; look up whether the snapshot is there.
            TimeoutError, ConnectionError: there was no answer; a snapshot that is not there now may
                still appear.
        """
        ...

    def store_schema(self, target: PinnedTable, changes: Sequence[Any]) -> bool:
        """Store the schema of ``target``, which has pypaimon's ``changes``; False: its id is taken.

        Raises: as ``publish``.
        """
        ...


@dataclass(frozen=True, slots=True)
class SnapshotFiles:
    """A ``SnapshotStore`` on plain storage: a snapshot is published once its file exists.

    A table can be rolled back, or dropped and made anew in its folder, at any time. A snapshot on
    top of what is gone would bring it back, or make the new table unreadable: so there is a look
    before it is created, which makes folders, and one behind, after which the id is taken.
    """

    files: ExclusiveFiles

    def publish(self, latest: PinnedTable, new: NewSnapshot) -> bool:
        """Create the snapshot's file, then update the LATEST hint."""
        root = latest.branch_path
        text = snapshot_files.snapshot_json(new.snapshot)
        path = entry_path(root, "snapshot", new.snapshot.id)
        own = latest.table.snapshot_manager().get_snapshot_path(new.snapshot.id)
        is_created = self._create(latest, path, own, text, partial(_require_latest, latest))
        if is_created:
            self.files.write_hint(hint_path(root, "LATEST"), str(new.snapshot.id))
        return is_created

    def store_schema(self, target: PinnedTable, changes: Sequence[Any]) -> bool:
        """Create the schema's file."""
        del changes
        number = table_schema.schema_id(target.table)
        path = entry_path(target.branch_path, "schema", number)
        own = table_schema.schema_path(target.table, number)
        text, base = schema_evolution.schema_text(target.table), target.evolved_from or target
        return self._create(base, path, own, text, partial(_require_there, base))

    def _create(
        self, table: PinnedTable, path: str, own: str, text: str, require: Callable[[], None]
    ) -> bool:
        """Create a file of the table, and take it back if ``require`` raises a CommitError then.

        ``own`` is the file as the table's ``file_io`` knows it.
        """
        _require_there(table)
        if not self.files.create(path, text):
            return False
        try:
            require()
        except CommitError:
            _take_back(table, own)
            raise
        except JobError as error:
            raise OSError(f"what {path} follows cannot be read: {error.message}") from error
        return True


def _take_back(table: PinnedTable, path: str) -> None:
    """Remove a file that has just been created.

    Raises:
        CommitError: COMMIT_OUTCOME_UNKNOWN: it is still there, perhaps.
    """
    files = table.table.file_io
    files.delete_quietly(path)
    with suppress(OSError):
        if not files.exists(path):
            return
    raise CommitError(
        ErrorCode.COMMIT_OUTCOME_UNKNOWN,
        f"The table was rolled back, or dropped, while {path} was stored, which cannot be removed.",
        "Look whether the table can be read; if not, remove this file.",
    )


def _require_there(table: PinnedTable) -> None:
    if not table_schema.is_stored(table.table):
        raise CommitError(
            ErrorCode.COMMIT_CONFLICT,
            f"{table.branch_path} was dropped while the statement ran.",
            "If the table was created anew, run the statement again: it will read the new one.",
        )


def _require_latest(table: PinnedTable) -> None:
    before = table.snapshot
    if before is None:
        _require_there(table)
        return
    found = stored_snapshots.find_snapshot(table.table, before.id)
    if found is None or not stored_snapshots.is_same_snapshot(found, before):
        raise CommitError(
            ErrorCode.COMMIT_CONFLICT,
            f"{table.branch_path} was rolled back, or dropped, while the statement ran.",
            READ_AGAIN,
        )
