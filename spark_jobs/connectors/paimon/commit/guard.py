"""The base guard: a consumer that keeps a statement's base snapshot from expiring. Driver only.

Every engine's expiry honours consumers. The guard also records the snapshot from which a later try
has to search for the operation's commit.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.contract.operation_files import ABANDONED_AFTER
from spark_jobs.formats.paimon.metadata_files import (
    FIRST_SNAPSHOT,
    consumer_document,
    entry_name,
    guard_name,
    guard_path,
    next_snapshot,
)
from spark_jobs.storage.files import read_note, remove_file, replace_file

_GUARDS = entry_name("consumer", guard_name(""))


@dataclass(frozen=True, slots=True)
class BaseGuard:
    """The guard of one operation on the table or branch in the directory ``root``."""

    filesystem: pafs.FileSystem
    root: str
    operation_id: str

    @property
    def path(self) -> str:
        """The consumer's file."""
        return guard_path(self.root, self.operation_id)

    def set(self, base_id: int | None) -> bool:
        """Guard the base snapshot and all later ones; return True if there was no guard before.

        ``base_id`` is None if the table has no snapshot. Snapshots that another try of the
        operation already guards stay guarded. Abandoned guards are removed.
        """
        first = FIRST_SNAPSHOT if base_id is None else base_id
        earlier = self.base()
        text = json.dumps(consumer_document(min(first, earlier or first)))
        replace_file(self.filesystem, self.path, text.encode())
        self._remove_abandoned()
        return earlier is None

    def base(self) -> int | None:
        """The id of the first guarded snapshot; None if there is no guard.

        Raises:
            CatalogError: METADATA_UNREADABLE: the file is not a consumer.
        """
        return read_note(
            self.filesystem,
            self.path,
            next_snapshot,
            "Look for the operation's snapshot by hand; then delete the file.",
        )

    def release(self) -> None:
        """Remove the guard, if there is one."""
        remove_file(self.filesystem, self.path)

    def _remove_abandoned(self) -> None:
        """Remove guards that are much older than this one, which the store has just dated."""
        folder = pafs.FileSelector(f"{self.root}/consumer", allow_not_found=True)
        infos_by_name = {info.base_name: info for info in self.filesystem.get_file_info(folder)}
        own = infos_by_name.get(self.path.rpartition("/")[2])
        if own is None or own.mtime is None:
            return
        for name, info in infos_by_name.items():
            is_guard = name.startswith(_GUARDS)
            if is_guard and info.mtime and info.mtime < own.mtime - ABANDONED_AFTER:
                remove_file(self.filesystem, info.path)


def guard_of(filesystem: pafs.FileSystem, table: PinnedTable, operation_id: str) -> BaseGuard:
    """The guard of an operation on a table or branch."""
    return BaseGuard(filesystem, table.branch_path, operation_id)
