"""The notes of a workspace in which running statements tell how far they are."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock
from typing import Any, Final

from airflow_provider_merge.storage.failures import reaching
from airflow_provider_merge.storage.files import list_names, modified, read_bytes, read_text
from spark_jobs.contract.operation_files import (
    ABANDONED_AFTER,
    FOLDER,
    operation_of_running,
    preview_path,
    result_path,
    running_path,
)
from spark_jobs.contract.progress_note import SILENT_AFTER, ProgressNote, catalog_mark
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.row_preview import RowPreview
from spark_jobs.errors import JobError

# For so many seconds, the notes are read once for all tables, and the folder is listed once: or for
# so many times the seconds that its listing took, as there may be 100,000 results in it.
_FRESH: Final = 5.0
_LISTED_FOR: Final = 20.0
# In bytes: a note has room for a result behind it.
_LONGEST: Final = 65_536
# Killed jobs leave theirs.
_MOST: Final = 500


@dataclass(frozen=True, slots=True)
class Running:
    """A note, and how many seconds ago it was written, by the store's clock and this machine's."""

    note: ProgressNote
    silent_for: float

    @property
    def is_silent(self) -> bool:
        """Whether its driver may be dead: a living one would have renewed the note."""
        return self.silent_for > SILENT_AFTER

    def is_of(self, catalog: CatalogSpec, table: TableName) -> bool:
        """Whether it is of a statement on a table."""
        # Names may hold dots, too; all that matters is the whole text.
        database, _, name = self.note.table.partition(".")
        is_table = TableName(database, name).folded == table.folded
        return is_table and self.note.catalog == catalog_mark(catalog)


@dataclass
class RunningNotes:
    """The notes in the workspace of ``catalog``, which fsspec opens with ``options``."""

    catalog: CatalogSpec
    options: Mapping[str, Any] = field(repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)
    _until: float = float("-inf")
    _found: list[Running] = field(default_factory=list)
    _listed_until: float = float("-inf")
    _ids: list[str] = field(default_factory=list)

    def of_table(self, table: TableName) -> list[Running]:
        """The statements on a table that run, or whose drivers were killed, the newest first.

        Raises:
            CatalogError: WORKSPACE_ACCESS_DENIED.
            InternalError: STORAGE_UNAVAILABLE.
        """
        with self._lock:
            if time.monotonic() >= self._until:
                with reaching(self._workspace, "workspace"):
                    self._found = self._all()
                self._until = time.monotonic() + _FRESH
            found = self._found
        of_table = [each for each in found if self._is_at_work(each, table)]
        return sorted(of_table, key=lambda each: each.note.began, reverse=True)

    def of_operation(self, operation_id: str, table: TableName) -> Running | None:
        """The note of a statement on a table; None: there is none. Raises as ``of_table``."""
        with reaching(self._workspace, "workspace"):
            found = self._noted(operation_id)
        return found if found is not None and self._is_at_work(found, table) else None

    def result(self, operation_id: str, table: TableName) -> JobResult | None:
        """The result that is kept of a statement on a table; None: there is none.

        Raises:
            JobError: as ``of_table``, or it cannot be understood.
        """
        for refused in (True, False):
            path = f"{self._workspace}/{result_path(operation_id, refused=refused)}"
            with reaching(self._workspace, "workspace"):
                text = read_text(path, self.options)
            result = None if text is None else JobResult.from_json(text)
            if result is not None and result.target.lower() == str(table).lower():
                return result
        return None

    def row_preview(self, operation_id: str, table: TableName) -> RowPreview | None:
        """The rows that a dry run on a table has kept; None: there are none.

        Raises:
            JobError: as ``of_table``, or they cannot be understood.
        """
        path = f"{self._workspace}/{preview_path(operation_id)}"
        with reaching(self._workspace, "workspace"):
            text = read_text(path, self.options)
        if text is None:
            return None
        preview = RowPreview.from_json(text)
        is_of_table = preview.table.lower() == str(table).lower()
        # Catalogs may share a workspace.
        is_own = is_of_table and preview.catalog == catalog_mark(self.catalog)
        return preview if is_own else None

    def _is_at_work(self, running: Running, table: TableName) -> bool:
        """Whether a statement is one on the table, and has left no result."""
        try:
            if not running.is_of(self.catalog, table):
                return False
            # A note that came too late, from a store that hung, is of a statement that has ended.
            note = running.note
            left = self.result(note.operation_id, table) if running.is_silent else None
        except JobError:
            return False
        return left is None or left.try_number < note.origin.try_number

    @property
    def _workspace(self) -> str:
        return self.catalog.workspace_location

    def _all(self) -> list[Running]:
        began = time.monotonic()
        if began >= self._listed_until:
            names = list_names(f"{self._workspace}/{FOLDER}", self.options)
            ids = [each for each in map(operation_of_running, names) if each is not None]
            self._ids = sorted(ids)[:_MOST]
            now = time.monotonic()
            self._listed_until = now + max(_FRESH, _LISTED_FOR * (now - began))
        return [each for each in map(self._noted, self._ids) if each is not None]

    def _noted(self, operation_id: str) -> Running | None:
        """The note of an operation; None: it has told nothing yet, or nothing for days."""
        path = f"{self._workspace}/{running_path(operation_id)}"
        written = modified(path, self.options)
        if written is None or (now := datetime.now(UTC)) - written > ABANDONED_AFTER:
            return None
        note = read_note(self._workspace, operation_id, self.options)
        if note is None:
            return None
        return Running(note, max(0.0, (now - written).total_seconds()))


def read_note(workspace: str, operation_id: str, options: Mapping[str, Any]) -> ProgressNote | None:
    """What a running statement has told; None: nothing yet, or it does not run.

    Raises:
        OSError: the storage failed.
    """
    try:
        content = read_bytes(f"{workspace}/{running_path(operation_id)}", options, _LONGEST)
        return ProgressNote.from_json((content or b"").decode())
    except (ValueError, RecursionError, JobError):
        # Of a statement that has begun a moment ago there is room alone.
        return None
