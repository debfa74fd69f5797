"""Notes of the marks that a table got, in the workspace: for when its history has expired.

The snapshots of the target are the memory of marks. Other engines write snapshots without marks,
and may expire all that have one. So an operation notes a mark before it publishes it, and
afterwards under which snapshot: what is known of the newest mark before the expired part.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from spark_jobs.contract.operation_files import mark_note_path
from spark_jobs.storage.files import replace_file
from spark_jobs.storage.notes import read_note

if TYPE_CHECKING:
    from spark_jobs.spi.storage import WarehouseStorage

# How far back a rollback may go without expired history becoming unknown.
_MOST: Final = 10


@dataclass(frozen=True, slots=True)
class NotedMark:
    """A mark that ``operation`` was about to publish; ``order`` is that of its snapshot, if known.

    ``snapshot_id`` and ``order`` are None until it is known that the snapshot is there.
    """

    operation: str
    mark: Mapping[str, Any]
    snapshot_id: int | None = None
    order: int | None = None


@dataclass(frozen=True, slots=True)
class MarkNotes:
    """The notes of the mark ``name`` of a table, which ``identity`` tells from later ones."""

    storage: WarehouseStorage
    name: str
    table: str
    identity: str

    def read(self) -> Sequence[NotedMark]:
        """The notes, oldest first; none if there are none of this very table.

        Raises:
            CatalogError: METADATA_UNREADABLE.
            OSError: the storage refused.
        """
        found = read_note(
            self.storage.filesystem,
            self._path,
            self._parsed,
            "Remove the file if the table's snapshots record the mark.",
        )
        return found or ()

    def add(self, noted: NotedMark) -> None:
        """Note a mark as the newest one, instead of what its operation noted before.

        Raises: as ``read``.
        """
        others = [each for each in self.read() if each.operation != noted.operation]
        self._write([*others, noted])

    def forget(self, operation: str) -> None:
        """Remove the note of an operation that certainly published nothing; raises as ``read``."""
        noted = self.read()
        kept = [e for e in noted if e.operation != operation or e.order is not None]
        if len(kept) < len(noted):
            self._write(kept)

    def _write(self, noted: Sequence[NotedMark]) -> None:
        marks = [
            [each.operation, each.snapshot_id, each.order, dict(each.mark)]
            for each in noted[-_MOST:]
        ]
        text = json.dumps({"table": self.table, "identity": self.identity, "marks": marks})
        replace_file(self.storage.filesystem, self._path, text.encode())

    def _parsed(self, document: Any) -> Sequence[NotedMark]:
        if document["identity"] != self.identity:
            return ()
        found = [
            NotedMark(who, dict(mark), at, order) for who, at, order, mark in document["marks"]
        ]
        if not all(isinstance(each.order, int | None) for each in found):
            raise ValueError("the order of a snapshot is no number")
        return found

    @property
    def _path(self) -> str:
        return f"{self.storage.root}/{mark_note_path(self.name, self.table)}"
