"""What an undo does to marks: those that it takes back do not count, and later ones are in the way.

A mark stands for everything up to its commit. If a commit is taken back, and a later one that moved
the same mark stays, nobody applies what was taken back again: so this is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from spark_jobs.contract.marks import PREFIX
from spark_jobs.contract.properties import OPERATION_ID
from spark_jobs.contract.undone import is_of_run, undone_operations
from spark_jobs.engine.marks.mark_notes import NotedMark, Snapshot, Undone, all_notes
from spark_jobs.engine.marks.marks import Marks
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.spi.marks import HistoryEntry

if TYPE_CHECKING:
    from spark_jobs.spi.connector import Connector
    from spark_jobs.spi.tables import TableHandle


def require_newest_marks(
    connector: Connector, table: TableHandle, dag_id: str, run_id: str
) -> None:
    """Check that no later commit moved a mark that the undo of a run takes back, or brings back.

    Raises:
        CommitError: COMMITS_OF_OTHERS, naming the commit.
    """
    later: dict[str, HistoryEntry] = {}
    brought_back: dict[str, Mapping[str, HistoryEntry]] = {}
    for entry in connector.writes.history(table).entries:
        names = _marks(entry.properties)
        operation_id = entry.properties.get(OPERATION_ID, "")
        if operation_id in brought_back:
            _refuse(table, names, brought_back[operation_id])
        if not entry.counts:
            continue
        if is_of_run(entry.properties, dag_id, run_id):
            _refuse(table, names, later)
            undone = undone_operations(entry.properties)
            brought_back |= {operation: dict(later) for operation in undone}
        else:
            later = {**dict.fromkeys(names, entry), **later}


def note_undone(connector: Connector, table: TableHandle, operation_id: str) -> None:
    """Note which marks the undo ``operation_id`` took back, or brought back.

    They are not forgotten: the table may be rolled back to a snapshot before the undo, when that
    with the mark has expired.

    Raises:
        OSError: the storage refused.
        JobError: as ``MarkNotes.read``.
    """
    history = connector.writes.history(table)
    noted = all_notes(connector.storage, str(table.name), history.identity)
    if not noted:
        return
    makers = {each.properties.get(OPERATION_ID, ""): each for each in history.entries}
    if operation_id not in makers:
        return
    made = makers[operation_id]
    operations = undone_operations(made.properties)
    at = Snapshot(made.snapshot_id, made.order)

    def noticed(mark: NotedMark) -> NotedMark:
        if mark.operation in operations:
            return replace(mark, undone=Undone(operation_id, at))
        if mark.undone is not None and mark.undone.operation in operations:
            return replace(mark, undone=replace(mark.undone, back=at))
        return mark

    for notes in noted:
        notes.change(noticed)
        # What an undo of an undo brings back is the newest mark again.
        Marks(connector, table).settle(notes.name)


def forget_left(connector: Connector, table: TableHandle) -> None:
    """Forget the marks of snapshots that ``table``, which was moved to another one, has left.

    Note the undos to which it came back.

    Raises: as ``note_undone``.
    """
    history = connector.writes.history(table)
    entries = list(history.entries)
    orders = {each.snapshot_id: each.order for each in entries}
    oldest = min(orders.values(), default=0)
    undos = _undos(entries)

    def was_left(snapshot_id: int | None, order: int) -> bool:
        return order > oldest and snapshot_id not in orders

    def noticed(mark: NotedMark) -> NotedMark:
        undone = undos.get(mark.operation)
        if undone is not None and (mark.order or 0) < undone.at.order:
            return replace(mark, undone=undone)
        undone = mark.undone
        if undone is not None and was_left(*undone.at):
            return replace(mark, undone=None)
        if undone is not None and undone.back is not None and was_left(*undone.back):
            return replace(mark, undone=replace(undone, back=None))
        return mark

    for notes in all_notes(connector.storage, str(table.name), history.identity):
        notes.remove(lambda each: each.order is not None and was_left(each.snapshot_id, each.order))
        notes.change(noticed)
        # Where it was moved forth, or back to where it was, that is the newest mark.
        Marks(connector, table).settle(notes.name)


def _undos(entries: Sequence[HistoryEntry]) -> dict[str, Undone]:
    """What took each operation back in a history, whose entries are the newest first."""
    return {
        operation: Undone(
            each.properties.get(OPERATION_ID, ""), Snapshot(each.snapshot_id, each.order)
        )
        for each in reversed(entries)
        if each.counts
        for operation in undone_operations(each.properties)
    }


def _marks(properties: Mapping[str, str]) -> list[str]:
    return [name for name in properties if name.startswith(PREFIX)]


def _refuse(table: TableHandle, names: Iterable[str], later: Mapping[str, HistoryEntry]) -> None:
    entry = next((later[name] for name in names if name in later), None)
    if entry is not None:
        raise CommitError(
            ErrorCode.COMMITS_OF_OTHERS,
            f"Snapshot {entry.snapshot_id} of {table.name} (operation "
            f"{entry.properties.get(OPERATION_ID)}) has applied what came after, of a source that "
            "is read incrementally: what is taken back would never be applied again.",
            "Undo the later runs of this task first, the newest one first.",
        )
