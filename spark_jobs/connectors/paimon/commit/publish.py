"""Publishing a snapshot or a schema only if no other writer was faster. Driver only.

pypaimon itself checks and then renames, so two processes can both pass the check, and one snapshot
is lost. Each kind of storage or catalog has a ``SnapshotStore`` without this race.

A schema and the snapshot whose files need it are two files, so they cannot appear together. The
schema comes first: a table that has it and not the snapshot has more columns and the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from spark_jobs.connectors.paimon.commit.new_snapshot import (
    Change,
    Commit,
    NewSnapshot,
    SnapshotWriter,
)
from spark_jobs.connectors.paimon.library import (
    new_schemas,
    rest_catalog,
    stored_snapshots,
    table_schema,
)
from spark_jobs.connectors.paimon.library.new_schemas import library_changes
from spark_jobs.connectors.paimon.metadata import PaimonMetadata
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.connectors.shared.commit.commit_loop import (
    before_publication,
    publish_once,
    store_once,
)
from spark_jobs.connectors.shared.commit.refusals import READ_AGAIN
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CommitError, ErrorCode, InternalError, JobError, error_of
from spark_jobs.formats.paimon.metadata_files import entry_path, hint_path
from spark_jobs.spi.tables import TableHandle

if TYPE_CHECKING:
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
        text = stored_snapshots.snapshot_json(new.snapshot)
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
        text, base = new_schemas.schema_text(target.table), target.evolved_from or target
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


class CatalogServer:
    """Implements ``SnapshotStore``: the server compares and swaps, and writes the snapshot file."""

    def __init__(self, catalog: Any) -> None:
        self._catalog = catalog

    def publish(self, latest: PinnedTable, new: NewSnapshot) -> bool:
        """Ask the server to commit ``new``; return False if another snapshot has its id."""
        if rest_catalog.commit_snapshot(
            self._catalog, latest.table, latest.snapshot, new.snapshot, new.entries
        ):
            return True
        # A proxy may have sent this request twice.
        try:
            found = stored_snapshots.find_snapshot(latest.table, new.snapshot.id)
        except JobError as error:
            raise TimeoutError(f"whose snapshot {new.snapshot.id} is, is not known") from error
        return found is not None and stored_snapshots.is_same_snapshot(found, new.snapshot)

    def store_schema(self, target: PinnedTable, changes: Sequence[Any]) -> bool:
        """Ask the server to alter the table; return False if it knows a column already."""
        return rest_catalog.alter_table(self._catalog, target.table, changes)


def store_schema(metadata: PaimonMetadata, store: SnapshotStore, table: TableHandle) -> bool:
    """Store the schema of an evolved table; False if there is none to store.

    Raises:
        CommitError: COMMIT_CONFLICT: the table's schema is no longer the one that was evolved.
        InternalError: STORAGE_UNAVAILABLE.
    """
    target = pinned_table(table)
    with before_publication():
        latest = pinned_table(metadata.load_table(table.name))
    if target.evolved_from is None or _file_schema(latest) == _file_schema(target):
        return False
    require_schema(table.name, latest, target.evolved_from)
    number = table_schema.schema_id(target.table)
    try:
        store_once(
            f"schema {number}",
            partial(store.store_schema, target, library_changes(table.schema_changes)),
            partial(_is_stored, metadata, table),
        )
    except CommitError as error:
        if error.code is ErrorCode.COMMIT_CONFLICT:
            raise
        raise InternalError(
            ErrorCode.STORAGE_UNAVAILABLE,
            f"{error.message} The rows of {table.name} are unchanged.",
            "Check the warehouse's storage, then run the statement again.",
        ) from error
    with before_publication():
        latest = pinned_table(metadata.load_table(table.name))
    require_schema(table.name, latest, target)
    return True


def require_schema(name: TableName, latest: PinnedTable, expected: PinnedTable) -> None:
    """Check that files for ``expected`` fit the table as it is now.

    Raises:
        CommitError: COMMIT_CONFLICT.
    """
    if _file_schema(latest) != _file_schema(expected):
        raise CommitError(
            ErrorCode.COMMIT_CONFLICT,
            f"The schema of {name} was changed while the statement ran.",
            "Run the statement again: it will read the table's new schema.",
        )


def require_same_table(name: TableName, latest: PinnedTable, base: PinnedTable) -> None:
    """Check that the table is still the one that was read, with or without snapshots.

    Files that were written for a table that is gone are gone with it.

    Raises:
        CommitError: COMMIT_CONFLICT.
    """
    read = base.evolved_from or base
    number = table_schema.schema_id(read.table)
    if table_schema.identity(latest.table, number) != table_schema.identity(read.table, number):
        raise CommitError(
            ErrorCode.COMMIT_CONFLICT,
            f"{name} was dropped and created anew while the statement ran.",
            "Run the statement again: it will read the new table.",
        )


def after_evolution(error: JobError, table: TableHandle) -> JobError:
    """``error``, which came after the schema was stored, saying so."""
    changes = ", ".join(map(str, table.schema_changes))
    note = f"The schema of {table.name} has been changed already ({changes}), its rows have not."
    if error.code is ErrorCode.COMMIT_OUTCOME_UNKNOWN:
        note = f"The schema of {table.name} has been changed ({changes})."
    return error_of(error.code, f"{error.message} {note}", error.remedy)


def _is_stored(metadata: PaimonMetadata, table: TableHandle) -> bool | None:
    """Whether the next schema is the evolved one; None if there is no next schema."""
    target = pinned_table(table)
    latest = pinned_table(metadata.load_table(table.name))
    if table_schema.schema_id(latest.table) < table_schema.schema_id(target.table):
        return None
    return _file_schema(latest) == _file_schema(target)


def _file_schema(table: PinnedTable) -> tuple[Any, ...]:
    """The schema that new files depend on: not only its id, which a recreated table may reuse."""
    schema, schema_id = table.schema, table_schema.schema_id(table.table)
    ids = table_schema.field_ids(table.table)
    return schema_id, schema.columns, ids, schema.partition_keys, table.bucketing.count
