"""The marks of a statement's sources: found in the target's history, moved by its next snapshot.

A mark is read at the snapshot that the statement builds on. The connector refuses to publish a
snapshot with a mark after another one that moved it, so the statement then reads it again: that
way, what one mark stands for is applied once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_jobs.contract.access_rights import writing_workspace
from spark_jobs.contract.marks import recorded_mark
from spark_jobs.contract.properties import OPERATION_ID
from spark_jobs.contract.undone import undone_operations
from spark_jobs.engine.marks.mark_notes import MarkNotes, Noted, NotedMark, Snapshot
from spark_jobs.errors import CommitError, ErrorCode, InternalError
from spark_jobs.spi.marks import HistoryEntry, TableHistory
from spark_jobs.spi.tables import TableHandle

if TYPE_CHECKING:
    from spark_jobs.spi.connector import Connector


def _nothing_to_store() -> None:
    """What a mark needs that is complete by itself."""


@dataclass(frozen=True, slots=True)
class NewMark:
    """A mark that the statement's snapshot is to record under ``name``.

    ``document`` is a small JSON object. ``store`` stores what it refers to; it is called before
    each try to publish, not in a dry run.
    """

    name: str
    document: Mapping[str, Any]
    store: Callable[[], None] = _nothing_to_store


@dataclass(frozen=True, slots=True)
class FoundMark:
    """A mark of the target: ``document`` as ``operation_id`` recorded it in ``snapshot_id``.

    ``order`` is that of the snapshot, which may have expired.
    """

    document: Mapping[str, Any]
    snapshot_id: int | None
    order: int
    operation_id: str


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of ``table``, as of the snapshot that it is pinned at."""

    connector: Connector
    table: TableHandle

    def newest(self, name: str) -> FoundMark | None:
        """The mark of this name; None: the history of the table has none, so this is the first run.

        Raises:
            CommitError: MARK_LOST: it was in a snapshot that has expired, and is not known.
            RequestError: REQUEST_INVALID: another version of this project wrote it.
            NotSupportedError: the connector keeps no marks.
        """
        history = self.connector.writes.history(self.table)
        mark, oldest, undone = _recorded(history, name)
        if mark is not None or oldest is None or oldest.is_first:
            return mark
        noted = self._notes(name, history.identity).read()
        counting = noted.without(
            lambda each: (
                each.operation in undone
                or each.snapshot_id in history.left
                or _was_undone(each, oldest, undone, history.left)
            )
        )
        return self._before(oldest, counting)

    def has_begun(self, name: str) -> bool:
        """Whether the table, or an earlier one of its name, once had the mark.

        Raises: as ``newest``.
        """
        identity = self.connector.writes.history(self.table).identity
        noted = self._notes(name, identity).read()
        return noted.has_begun or noted.was_made_anew

    def note(self, mark: NewMark, operation_id: str) -> None:
        """Store what a mark refers to, and note that it is about to be published.

        Raises:
            CatalogError: WORKSPACE_ACCESS_DENIED.
            InternalError: STORAGE_UNAVAILABLE.
        """
        try:
            with writing_workspace():
                mark.store()
                history = self.connector.writes.history(self.table)
                base = next((each.order for each in history.entries), 0)
                notes = self._notes(mark.name, history.identity)
                notes.add(NotedMark(operation_id, mark.document, base))
        except OSError as error:
            raise InternalError(
                ErrorCode.STORAGE_UNAVAILABLE,
                f"The mark of a source could not be stored, so nothing was published: {error}",
                "Check the storage of the workspace.",
            ) from error

    def settle(self, name: str) -> None:
        """Note under which snapshot the newest mark is, if it is in the history.

        Raises:
            JobError: as ``newest``, except for MARK_LOST.
            OSError: the storage refused.
        """
        history = self.connector.writes.history(self.table)
        mark, _, _ = _recorded(history, name)
        if mark is not None and mark.snapshot_id is not None:
            at = mark.snapshot_id, mark.order
            known = NotedMark(mark.operation_id, mark.document, mark.order, *at)
            self._notes(name, history.identity).know(known)

    def forget(self, mark: NewMark, operation_id: str) -> None:
        """Forget a mark that was certainly not published; raises as ``settle``."""
        identity = self.connector.writes.history(self.table).identity
        notes = self._notes(mark.name, identity)
        notes.remove(lambda each: each.operation == operation_id and not each.is_known)

    def _notes(self, name: str, identity: str) -> MarkNotes:
        return MarkNotes(self.connector.storage, name, str(self.table.name), identity)

    def _before(self, oldest: HistoryEntry, noted: Noted) -> FoundMark | None:
        """The newest noted mark of the snapshots before ``oldest``, which have expired.

        Raises:
            CommitError: MARK_LOST.
        """
        for note in reversed(noted.marks):
            if note.order is None and oldest.order <= note.base:
                # It would be among the snapshots that have not expired.
                continue
            if note.order is None:
                raise self._lost(oldest, f"whether operation {note.operation} moved it")
            if note.order < oldest.order:
                found = note.mark, note.snapshot_id, note.order, note.operation
                return FoundMark(*found)
        if noted.is_cut:
            raise self._lost(oldest, "which one it had before it was rolled back")
        return None

    def _lost(self, oldest: HistoryEntry, what: str) -> CommitError:
        return CommitError(
            ErrorCode.MARK_LOST,
            f"The snapshots of {self.table.name} before {oldest.snapshot_id} have expired, so it "
            f"is not known how far the source was applied: {what}.",
            "Look at the table's rows. Then rename the source, or the task, which begins a new "
            "mark, and set its start to what is missing.",
        )


def _was_undone(mark: NotedMark, oldest: HistoryEntry, undone: Set[str], left: Set[int]) -> bool:
    """Whether what took a mark back is among the snapshots before ``oldest``, which have expired.

    ``undone``: the operations that snapshots since then took back. ``left``: as in
    ``TableHistory``.
    """

    def has_expired(snapshot: Snapshot | None) -> bool:
        if snapshot is None or snapshot.snapshot_id in left:
            return False
        return snapshot.order < oldest.order

    undo = mark.undone
    if undo is None or not has_expired(undo.at):
        return False
    return undo.operation not in undone and not has_expired(undo.back)


def _recorded(
    history: TableHistory, name: str
) -> tuple[FoundMark | None, HistoryEntry | None, set[str]]:
    """The newest mark in a history, the oldest snapshot that was looked at, what was taken back."""
    oldest: HistoryEntry | None = None
    undone: set[str] = set()
    for entry in history.entries:
        oldest = entry
        undone |= undone_operations(entry.properties) if entry.counts else set()
        mark = recorded_mark(entry.properties, name) if entry.counts else None
        if mark is not None:
            maker = entry.properties.get(OPERATION_ID, "")
            return FoundMark(mark, entry.snapshot_id, entry.order, maker), oldest, undone
    return None, oldest, undone


def begun_before(source: str, marks: Marks) -> CommitError:
    """The error for a source that would begin at "now" again, and leave out what came between."""
    return CommitError(
        ErrorCode.MARK_LOST,
        f"{source}: {marks.table.name} does not say any more how far the task has applied it: it "
        "was rolled back to a time before the first run, or made anew.",
        "Set start to a time, or to 'all'.",
    )
