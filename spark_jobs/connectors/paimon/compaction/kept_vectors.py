"""The index files without the deletion vectors of compacted files. Driver only."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable
from typing import Any

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.commit.index_changes import (
    IndexChanges,
    index_changes,
    new_index_path,
)
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.connectors.paimon.write.table_layout import NamePrefixes
from spark_jobs.storage.files import remove_file


class KeptVectors:
    """The index changes of the attempts to publish; only the files of the last attempt stay."""

    def __init__(self, filesystem: pafs.FileSystem) -> None:
        self._filesystem = filesystem
        self._made_for: tuple[Any, ...] = ()
        self._changes = IndexChanges()
        self._paths: list[str] = []

    def changes(self, latest: PinnedTable, removed: Iterable[Any]) -> IndexChanges:
        """The changes of the index files of ``latest`` when the ``removed`` entries' files go."""
        entries = list(removed)
        gone = frozenset(entry.file.file_name for entry in entries)
        snapshot = latest.snapshot
        made_for = (snapshot.index_manifest if snapshot else None, gone)
        if made_for != self._made_for:
            self.remove()
            self._changes = self._without(latest, gone, entries)
            self._made_for = made_for
        return self._changes

    def remove(self) -> None:
        """Remove the files, which no snapshot refers to."""
        for path in self._paths:
            remove_file(self._filesystem, path)
        self._paths, self._made_for = [], ()

    def _without(
        self, latest: PinnedTable, gone: Collection[str], entries: Iterable[Any]
    ) -> IndexChanges:
        prefix = NamePrefixes.of(latest, str(uuid.uuid4())).indexes
        by_bucket = index_changes(
            latest, latest.files.index_files, (), gone, entries, self._filesystem, prefix
        )
        changes = IndexChanges()
        for place in sorted(by_bucket, key=repr):
            changes.adds += by_bucket[place].adds
            changes.deletes += by_bucket[place].deletes
        self._paths = [new_index_path(latest, entry) for entry in changes.adds]
        return changes
