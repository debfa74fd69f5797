"""Notes on which snapshot an operation builds, in the workspace. Driver only.

A later try looks for the operation's commit from there on. Unlike a tag, a note costs no commit.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime

import pyarrow.fs as pafs

from spark_jobs.connectors.iceberg.table.metadata_errors import reading_metadata
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.contract.operation_files import FOLDER, base_path
from spark_jobs.formats.iceberg.holds import Base, operation_at_work
from spark_jobs.spi.storage import WarehouseStorage
from spark_jobs.storage.files import read_note, remove_file, replace_file


def base_of(table: PinnedTable) -> Base:
    """What a write on ``table`` is based on."""
    snapshot_id = None if table.snapshot is None else int(table.snapshot.snapshot_id)
    return Base(snapshot_id, table.last_sequence_number)


@dataclass(frozen=True, slots=True)
class AtWork:
    """An operation that began at ``since``."""

    operation_id: str
    base: Base
    since: datetime


@dataclass(frozen=True, slots=True)
class BaseNotes:
    """The notes in a workspace."""

    storage: WarehouseStorage

    def set(self, operation_id: str, table: PinnedTable) -> bool:
        """Note the base unless another try of the operation has noted one; True if none has."""
        if self.get(operation_id, table) is not None:
            return False
        document = {"table": str(table.metadata.table_uuid), **asdict(base_of(table))}
        replace_file(
            self.storage.filesystem, self._path(operation_id), json.dumps(document).encode()
        )
        return True

    def get(self, operation_id: str, table: PinnedTable) -> Base | None:
        """The noted base; None if no try has begun to write to this table.

        Raises:
            CatalogError: METADATA_UNREADABLE: the file is no note.
        """
        return self._read(self._path(operation_id), table)

    def at_work(self, table: PinnedTable, now: datetime) -> list[AtWork]:
        """The operations that may be at work on the table at ``now``.

        Raises:
            CatalogError: METADATA_UNREADABLE: a file is no note.
            InternalError: STORAGE_UNAVAILABLE.
        """
        files = self.storage.filesystem
        folder = pafs.FileSelector(f"{self.storage.root}/{FOLDER}", allow_not_found=True)
        with reading_metadata(table.place):
            noted = [
                (operation_id, info)
                for info in files.get_file_info(folder)
                if (operation_id := operation_at_work(info.base_name, info.mtime, now)) is not None
                and info.is_file
            ]
        bases = [(name, self._read(info.path, table), info.mtime) for name, info in noted]
        return [AtWork(name, base, since) for name, base, since in bases if base is not None]

    def _read(self, path: str, table: PinnedTable) -> Base | None:
        return read_note(
            self.storage.filesystem,
            path,
            lambda document: Base.noted(document, table.metadata.table_uuid),
            "Look for the operation's snapshot by hand; then delete the file.",
        )

    def remove(self, operation_id: str) -> None:
        """Remove the note, if there is one."""
        remove_file(self.storage.filesystem, self._path(operation_id))

    def _path(self, operation_id: str) -> str:
        return f"{self.storage.root}/{base_path(operation_id)}"
