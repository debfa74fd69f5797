"""The marks of a statement's sources: found in the target's history, moved by its next snapshot.

A mark is read at the snapshot that the statement builds on. The connector refuses to publish a
snapshot with a mark after another one that moved it, so the statement then reads it again: that
way, what one mark stands for is applied once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_jobs.contract.marks import mark_text, recorded_mark
from spark_jobs.contract.properties import OPERATION_ID
from spark_jobs.contract.undone import undone_operations
from spark_jobs.engine.marks.mark_notes import MarkNotes, NotedMark
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.spi.marks import HistoryEntry
from spark_jobs.spi.tables import CommittedSnapshot, TableHandle

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
    """A mark of the target: ``document`` as it was recorded, in ``snapshot_id``.

    ``operation_id`` is of the operation that recorded it.
    """

    document: Mapping[str, Any]
    snapshot_id: int | None
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
        oldest: HistoryEntry | None = None
        undone: set[str] = set()
        for each in history.entries:
            oldest = each
            undone |= undone_operations(each.properties) if each.counts else set()
            mark = recorded_mark(each.properties, name) if each.counts else None
            if mark is not None:
                maker = each.properties.get(OPERATION_ID, "")
                return FoundMark(mark, each.snapshot_id, maker)
        if oldest is None or oldest.is_first:
            return None
        notes = self._notes(name, history.identity).read()
        return self._before(oldest, [each for each in notes if each.operation not in undone])

    def note(self, mark: NewMark, operation_id: str) -> None:
        """Store what a mark refers to, and note that it is about to be published.

        Raises:
            OSError: the storage refused.
        """
        mark_text(mark.document)
        mark.store()
        notes = self._notes(mark.name, self.connector.writes.history(self.table).identity)
        notes.add(NotedMark(operation_id, mark.document))

    def confirm(self, mark: NewMark, operation_id: str, snapshot: CommittedSnapshot) -> None:
        """Note that a mark is in a snapshot; raises as ``note``, and what the catalog raises."""
        latest = self.connector.metadata.load_table(self.table.name)
        history = self.connector.writes.history(latest)
        for each in history.entries:
            if each.snapshot_id == snapshot.snapshot_id:
                noted = NotedMark(operation_id, mark.document, each.snapshot_id, each.order)
                self._notes(mark.name, history.identity).add(noted)
                return

    def forget(self, mark: NewMark, operation_id: str) -> None:
        """Forget a mark that was certainly not published; raises as ``note``."""
        identity = self.connector.writes.history(self.table).identity
        self._notes(mark.name, identity).forget(operation_id)

    def _notes(self, name: str, identity: str) -> MarkNotes:
        return MarkNotes(self.connector.storage, name, str(self.table.name), identity)

    def _before(self, oldest: HistoryEntry, noted: Sequence[NotedMark]) -> FoundMark | None:
        """The newest noted mark of the snapshots before ``oldest``, which have expired.

        Raises:
            CommitError: MARK_LOST.
        """
        for each in reversed(noted):
            if each.order is None:
                raise self._lost(oldest, f"whether operation {each.operation} moved it")
            if each.order < oldest.order:
                return FoundMark(each.mark, each.snapshot_id, each.operation)
        if noted:
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
