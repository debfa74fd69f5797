"""Notes of the marks that a table got, in the workspace: for when its history has expired.

The snapshots of the target are the memory of marks. Other engines write snapshots without marks,
and may expire all that have one. So an operation notes a mark before it publishes it, and
afterwards under which snapshot: what is known of the newest mark before the expired part.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow.fs as pafs

from spark_jobs.contract.marks import PREFIX
from spark_jobs.contract.operation_files import mark_note_path, mark_notes_folder, mark_of_note
from spark_jobs.storage.files import read_note, replace_file

if TYPE_CHECKING:
    from spark_jobs.spi.storage import WarehouseStorage

# How far back a rollback may go without expired history becoming unknown.
_MOST: Final = 10


class Snapshot(NamedTuple):
    """A snapshot of the table, and its order."""

    snapshot_id: int
    order: int


@dataclass(frozen=True, slots=True)
class Undone:
    """The undo ``operation``, in the snapshot ``at``; ``back``: that of the undo of it, if any."""

    operation: str
    at: Snapshot
    back: Snapshot | None = None


@dataclass(frozen=True, slots=True)
class NotedMark:
    """A mark that ``operation`` was about to publish; ``order`` is that of its snapshot, if known.

    ``base`` is the order of the snapshot that it builds on; 0: of none. ``snapshot_id`` and
    ``order`` are None until it is known that the snapshot is there. ``undone``: what took it back;
    in the snapshots before that one, it counts.
    """

    operation: str
    mark: Mapping[str, Any]
    base: int
    snapshot_id: int | None = None
    order: int | None = None
    undone: Undone | None = None

    @property
    def is_known(self) -> bool:
        """Whether it is certain that a snapshot has it."""
        return self.order is not None


@dataclass(frozen=True, slots=True)
class Noted:
    """The notes of a mark, oldest first.

    ``has_begun``: the table once had it, in a snapshot that need not be in its history any more.
    ``was_made_anew``: so had an earlier table of its name. ``is_cut``: older ones are not noted any
    more.
    """

    identity: str
    marks: tuple[NotedMark, ...] = ()
    has_begun: bool = False
    was_made_anew: bool = False
    is_cut: bool = False

    def with_mark(self, noted: NotedMark) -> Noted:
        """With ``noted`` as the newest one, instead of what its operation noted before."""
        marks = [*(each for each in self.marks if each.operation != noted.operation), noted]
        return replace(
            self,
            marks=tuple(marks[-_MOST:]),
            has_begun=self.has_begun or noted.is_known,
            is_cut=self.is_cut or len(marks) > _MOST,
        )

    def knowing(self, noted: NotedMark) -> Noted:
        """With ``noted``, of which it is known now that a snapshot has it, where it was noted.

        What was noted before it and is not known now was never published, and never will be:
        ``noted`` was built on another mark, and is in the way.
        """
        operations = [each.operation for each in self.marks]
        if noted.operation not in operations:
            return self.with_mark(noted)
        at = operations.index(noted.operation)
        before = (each for each in self.marks[:at] if each.is_known)
        undone = self.marks[at].undone
        if undone is not None and undone.back is not None:
            noted = replace(noted, undone=undone)
        return replace(self, marks=(*before, noted, *self.marks[at + 1 :]), has_begun=True)

    def without(self, is_gone: Callable[[NotedMark], bool]) -> Noted:
        """Without the marks that are gone."""
        return replace(self, marks=tuple(each for each in self.marks if not is_gone(each)))

    def changed(self, change: Callable[[NotedMark], NotedMark]) -> Noted:
        """With ``change`` of each mark."""
        return replace(self, marks=tuple(map(change, self.marks)))


@dataclass(frozen=True, slots=True)
class MarkNotes:
    """The notes of the mark ``name`` of a table, which ``identity`` tells from later ones."""

    storage: WarehouseStorage
    name: str
    table: str
    identity: str

    def read(self) -> Noted:
        """The notes of this very table.

        Raises:
            CatalogError: METADATA_UNREADABLE.
            OSError: the storage refused.
        """
        noted = read_note(
            self.storage.filesystem,
            self._path,
            _parsed,
            "Remove the file if the table's snapshots record the mark.",
        )
        if noted is None:
            return Noted(self.identity)
        if noted.identity != self.identity:
            return Noted(self.identity, was_made_anew=noted.has_begun or noted.was_made_anew)
        return noted

    def add(self, noted: NotedMark) -> None:
        """Note a mark as the newest one; raises as ``read``."""
        self._write(self.read().with_mark(noted))

    def know(self, noted: NotedMark) -> None:
        """Note that a snapshot has a mark; raises as ``read``."""
        self._become(lambda before: before.knowing(noted))

    def remove(self, is_gone: Callable[[NotedMark], bool]) -> None:
        """Remove the notes of marks that are gone; raises as ``read``."""
        self._become(lambda before: before.without(is_gone))

    def change(self, change: Callable[[NotedMark], NotedMark]) -> None:
        """Change what is noted of each mark; raises as ``read``."""
        self._become(lambda before: before.changed(change))

    def _become(self, changed: Callable[[Noted], Noted]) -> None:
        before = self.read()
        after = changed(before)
        if after != before:
            self._write(after)

    def _write(self, noted: Noted) -> None:
        marks = [
            [
                *(each.operation, each.base, each.snapshot_id, each.order, dict(each.mark)),
                [each.undone.operation, each.undone.at, each.undone.back] if each.undone else None,
            ]
            for each in noted.marks
        ]
        document = {
            "identity": noted.identity,
            "has_begun": noted.has_begun,
            "was_made_anew": noted.was_made_anew,
            "is_cut": noted.is_cut,
            "marks": marks,
        }
        replace_file(self.storage.filesystem, self._path, json.dumps(document).encode())

    @property
    def _path(self) -> str:
        return f"{self.storage.root}/{mark_note_path(self.table, self.name)}"


def all_notes(storage: WarehouseStorage, table: str, identity: str) -> list[MarkNotes]:
    """The notes of all marks that a table got.

    Raises:
        OSError: the storage refused.
    """
    folder = f"{storage.root}/{mark_notes_folder(table)}"
    found = storage.filesystem.get_file_info(pafs.FileSelector(folder, allow_not_found=True))
    names = [mark_of_note(each.base_name) for each in found]
    return [MarkNotes(storage, PREFIX + name, table, identity) for name in names if name]


def _parsed(document: Any) -> Noted:
    marks = tuple(
        NotedMark(who, dict(mark), base, at, order, _undone(*more))
        for who, base, at, order, mark, *more in document["marks"]
    )
    numbers: list[Any] = [each for mark in marks for each in (mark.base, mark.order or 0)]
    undone = [mark.undone for mark in marks if mark.undone is not None]
    numbers += [number for each in undone for number in (*each.at, *(each.back or ()))]
    if not all(isinstance(each, int) for each in numbers):
        raise ValueError("the order of a snapshot is not a number")
    flags = (bool(document[each]) for each in ("has_begun", "was_made_anew", "is_cut"))
    return Noted(str(document["identity"]), marks, *flags)


def _undone(told: list[Any] | None = None) -> Undone | None:
    """What took a mark back; earlier releases did not note it."""
    if told is None:
        return None
    operation, at, back = told
    return Undone(str(operation), Snapshot(*at), Snapshot(*back) if back else None)
